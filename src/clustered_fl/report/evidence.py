"""Reading what a report shows, from ledgers and results; what is absent stays absent."""

import csv
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

from PIL import Image

from clustered_fl import records
from clustered_fl.errors import InputError
from clustered_fl.files import read_json
from clustered_fl.ledger import resolved_encoders, resolved_groupings, resolved_runs
from clustered_fl.report.entries import (
    ArtefactEntry,
    ClaimEntry,
    PaperEntry,
    RunEntry,
    Scope,
    SeedEntry,
    StudyEntry,
    datasets,
)
from clustered_fl.report.verdicts import Verdict, read_verdicts
from clustered_fl.same_ground import pairs
from clustered_fl.schema import Ledger, Run

VERDICTS = "verdicts.csv"


def gather(scope: Scope, suffixes: tuple[str, ...]) -> list[PaperEntry]:
    """Read everything that there is for a report.

    Args:
        scope: what the report is about.
        suffixes: of the artefacts' files that the report takes along.
    Raises:
        InputError: if a file cannot be read, verdicts and ledgers name different claims, or what
            was published earlier has other settings than its ledger.
    """
    folders = {scope.folder(ledger.paper) for ledger in scope.ledgers}
    verdicts = {folder: _verdicts(folder, scope) for folder in folders}
    return [
        _paper(ledger, scope, suffixes, verdicts[scope.folder(ledger.paper)])
        for ledger in scope.ledgers
    ]


def _verdicts(folder: Path, scope: Scope) -> list[Verdict] | None:
    """Those on the papers that are taken from a folder; None if there are none."""
    path = folder / VERDICTS
    if not path.exists():
        return None
    rows = read_verdicts(path, scope.scale)
    if scope.earlier and folder == scope.earlier.folder:
        rows = [row for row in rows if row.paper in scope.earlier.papers]
    ledgers = [ledger for ledger in scope.ledgers if scope.folder(ledger.paper) == folder]
    known = {claim for ledger in ledgers for claim in ledger.claims}
    if differing := known ^ {row.claim for row in rows}:
        raise InputError(
            f"{path} and the ledgers differ in claim {min(differing)}; evaluate the claims again"
        )
    return rows


def _paper(
    ledger: Ledger, scope: Scope, suffixes: tuple[str, ...], verdicts: list[Verdict] | None
) -> PaperEntry:
    encoders = {name: _encoder(name, ledger, scope) for name in ledger.encoders}
    groupings = {name: _grouping(name, ledger, scope) for name in ledger.groupings}
    runs = {name: _run(name, ledger, scope) for name in ledger.runs}
    computed = encoders | groupings | runs
    claims = None
    if verdicts is not None:
        own = [verdict for verdict in verdicts if verdict.claim in ledger.claims]
        claims = [ClaimEntry(ledger.claims[verdict.claim], verdict) for verdict in own]
    studies = {name: _study(name, ledger, scope) for name in ledger.studies}
    artefacts = [
        _artefact(name, ledger, scope, suffixes, claims or [], computed)
        for name in ledger.artefacts
    ]
    return PaperEntry(ledger, encoders, groupings, runs, studies, artefacts, claims)


HIDDEN = ("run", "name", "paper", "scale")
"""Parts of a configuration that say only where it stands."""


def _encoder(name: str, ledger: Ledger, scope: Scope) -> RunEntry:
    config = resolved_encoders(ledger, scope.scale)[name]
    seed = _seed(name, 0, f"encoders/{name}", config, scope)
    return RunEntry(name, ledger.encoders[name], _shown(config), [seed])


def _grouping(name: str, ledger: Ledger, scope: Scope) -> RunEntry:
    resolved = resolved_groupings(ledger, scope.scale)[name]
    seeds = [
        _seed(name, seed, f"groupings/{name}/seed{seed}", resolved["config"], scope)
        for seed in resolved["seeds"][: scope.limit(ledger.paper)]
    ]
    if name in _without_truth(ledger):
        seeds = [replace(seed, score=None) for seed in seeds]
    return RunEntry(name, ledger.groupings[name], _shown(resolved["config"]), seeds)


def _without_truth(ledger: Ledger) -> set[str]:
    """Groupings of clients of whom nobody knows the true groups, so that agreement says nothing."""
    return {pair.grouping for pair in pairs(ledger) if not ledger.grounds[pair.ground].truth}


def _shown(configuration: dict[str, Any]) -> dict[str, Any]:
    return deepcopy({key: each for key, each in configuration.items() if key not in HIDDEN})


def _run(name: str, ledger: Ledger, scope: Scope) -> RunEntry:
    resolved = resolved_runs(ledger, scope.scale)
    members = {member: run for member, run in resolved.items() if run["family"] == name}
    seeds = [
        _seed(member, seed, f"runs/{member}/seed{seed}", run["config"], scope)
        for member, run in members.items()
        for seed in run["seeds"][: scope.limit(ledger.paper)]
    ]
    configuration = next((run["config"] for run in members.values()), {})
    return RunEntry(name, ledger.runs[name], _swept(configuration, ledger.runs[name], scope), seeds)


def _swept(configuration: dict[str, Any], run: Run, scope: Scope) -> dict[str, Any]:
    """The configuration with all values of the sweep in the place of one."""
    shown = _shown(configuration)
    if run.sweep is None or not shown:
        return shown
    *path, last = run.sweep.setting.split(".")
    place = shown
    for key in path:
        place = place[key]
    place[last] = f"{', '.join(map(str, run.sweep.values[scope.scale]))} (a run each)"
    return shown


def _seed(run: str, seed: int, path: str, config: dict[str, Any], scope: Scope) -> SeedEntry:
    folder = scope.folder(config["paper"]) / path
    if not (folder / records.RECORD).exists():
        return SeedEntry(run, seed, path, None, None)
    record = records.load_record(folder)
    earlier = scope.earlier_of(config["paper"])
    if earlier is None:
        return SeedEntry(run, seed, path, record, _score(folder, record))
    _check_settings(folder / records.RECORD, record["config"], config | {"seed": seed})
    return SeedEntry(run, seed, path, record, earlier.score(run, seed))


def _check_settings(path: Path, found: dict[str, Any], config: dict[str, Any]) -> None:
    """What was published earlier was made with the settings that a page shows of it.

    A setting that the ledger has gained since is none that the record could differ in.
    """
    if differing := [key for key in found if found[key] != config.get(key)]:
        paper = config["paper"]
        raise InputError(
            f"{path} has another {differing[0]} than the ledger of {paper}; "
            f"compute it anew and publish it with --config 'papers=[{paper},...]'"
        )


def _score(folder: Path, record: dict[str, Any]) -> float | None:
    """Mean test score of a run, agreement of a grouping with the truth, error of an encoder."""
    if "agreement" in record:
        return record["agreement"]["ari"]
    if "test_error" in record:
        return record["test_error"]
    rounds, metric = records.load_rounds(folder), record["metric"]
    rows = rounds[(rounds["scope"] == "client") & (rounds["metric"] == metric)]
    last = rows.loc[rows["round"] == rows["round"].max(), "value"]
    return float(last.mean()) if len(last) else None


def _study(name: str, ledger: Ledger, scope: Scope) -> StudyEntry:
    folder = f"studies/{name}"
    path = scope.folder(ledger.paper) / folder / records.RECORD
    record = read_json(path) if path.exists() else None
    return StudyEntry(name, ledger.studies[name], folder, record)


def _artefact(
    name: str,
    ledger: Ledger,
    scope: Scope,
    suffixes: tuple[str, ...],
    claims: list[ClaimEntry],
    computed: dict[str, RunEntry],
) -> ArtefactEntry:
    about, results = ledger.artefacts[name], scope.folder(ledger.paper)
    paths = {suffix: f"artefacts/{name}/{name}.{suffix}" for suffix in suffixes}
    files = {suffix: path for suffix, path in paths.items() if (results / path).exists()}
    used = [*about.encoders, *about.groupings, *about.runs]
    seeds = (seed for name in used for seed in computed[name].done)
    data = datasets(seeds, digests=False)
    sources = {scope.source, *(each["source"] for each in data)}
    return ArtefactEntry(
        name,
        about,
        files,
        size=_picture_size(results / files["png"]) if "png" in files else None,
        rows=_rows(results / files["csv"]) if about.kind == "table" and "csv" in files else [],
        claims=[claim for claim in claims if claim.about.artefact == name],
        data=data,
        stand_ins=bool(used) and "builtin" in sources,
    )


def _rows(path: Path) -> list[list[str]]:
    with path.open(newline="") as file:
        return list(csv.reader(file))


def _picture_size(path: Path) -> tuple[int, int]:
    try:
        with Image.open(path) as picture:
            return picture.size
    except OSError as error:
        raise InputError(f"{path} is no picture; make the artefact again") from error
