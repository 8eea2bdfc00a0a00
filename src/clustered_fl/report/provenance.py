"""Where every number comes from: data, code, configuration, machine and cost of every record."""

from typing import Any

from clustered_fl.report.entries import PaperEntry, Scope, SeedEntry

_KEPT = ("config_digest", "code", "data", "device", "versions")
_OF_RUNS = ("federation_digest", "rounds")
_STUDY = ("function", "settings", "seed", "config_digest", "code", "versions", "seconds")


def provenance(papers: list[PaperEntry], scope: Scope) -> dict[str, Any]:
    """For every run its seeds, and for every study, what identifies the record; None if absent."""
    runs: dict[str, dict[str, Any]] = {}
    for entry in (seed for paper in papers for seed in paper.seeds):
        runs.setdefault(entry.run, {})[str(entry.seed)] = _seed(entry)
    studies = {
        name: study.record and {key: study.record[key] for key in _STUDY}
        for paper in papers
        for name, study in paper.studies.items()
    }
    return {"scale": scope.scale, "source": scope.source, "runs": runs, "studies": studies}


def _seed(entry: SeedEntry) -> dict[str, Any] | None:
    if entry.record is None:
        return None
    known = {key: entry.record[key] for key in _OF_RUNS if key in entry.record}
    kept = {key: entry.record[key] for key in _KEPT}
    return kept | known | entry.record["cost"] | {"score": entry.score}


def machines(papers: list[PaperEntry]) -> list[dict[str, Any]]:
    """Every combination of device and versions, with number, records and seconds made on it."""
    found: dict[tuple, dict[str, Any]] = {}
    for record in (seed.record for paper in papers for seed in paper.seeds if seed.record):
        key = (record["device"], *sorted(record["versions"].items()))
        empty = {"device": key[0], "versions": record["versions"], "records": 0, "seconds": 0.0}
        machine = found.setdefault(key, empty)
        machine["records"] += 1
        machine["seconds"] += record["cost"]["seconds"]
    return [found[key] | {"number": number} for number, key in enumerate(sorted(found), start=1)]
