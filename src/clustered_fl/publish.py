"""What is committed of the results: the report with pictures and tables, and nothing that trains.

Nothing else writes to `figures/`. Executed notebooks are left out, because no two executions are
the same byte for byte; PDF and LaTeX too, because SVG and Markdown show the same.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from clustered_fl.errors import InputError
from clustered_fl.files import read_json
from clustered_fl.ledger import load_ledger, resolved_encoders, resolved_groupings, resolved_runs
from clustered_fl.records import RECORD
from clustered_fl.report import site
from clustered_fl.report.entries import Publication, Scope
from clustered_fl.report.evidence import VERDICTS
from clustered_fl.report.folder import MARK, replacing_folder
from clustered_fl.report.verdicts import read_verdicts
from clustered_fl.schema import Ledger

SUFFIXES = ("png", "svg", "csv", "md")
LIMIT_MB = 25  # four sections take 19 at desktop, half of it pictures


def publish(scope: Scope, out: Path, ledgers: Path) -> None:
    """Write the report, without what is not worth committing, in the place of a former one.

    A paper that is published there and that `scope` is not about stays: papers take hours, and may
    be computed one after another, on machines that do not have the results of each other.

    Args:
        scope: which results.
        out: folder, usually `figures/<scale>`.
        ledgers: folder with the ledgers of all papers.
    Raises:
        InputError: if there are no verdicts, the folder would be too large to commit, or a paper
            that would stay does not fit; what was published before then stays.
    """
    if not (scope.results / VERDICTS).exists():
        raise InputError(
            f"{scope.results / VERDICTS} does not exist; evaluate the claims before publishing"
        )
    with replacing_folder(out) as beside:
        site.write(_with_earlier(scope, out, ledgers), beside, SUFFIXES)
        _check_size(beside, out)


def _with_earlier(scope: Scope, out: Path, ledgers: Path) -> Scope:
    """The scope with the papers that are published in `out` and that it is not about."""
    if not (out / VERDICTS).exists():
        return scope
    there = [row.paper for row in read_verdicts(out / VERDICTS, scope.scale)]
    known = {ledger.paper: ledger for ledger in scope.ledgers}
    papers = tuple(paper for paper in dict.fromkeys(there) if paper not in known)
    earlier = Publication(out, papers, read_json(out / MARK))
    for paper in papers:
        known[paper] = load_ledger(ledgers / f"{paper}.yaml")
        _check_fits(known[paper], earlier, scope)
    ordered = tuple(known[paper] for paper in dict.fromkeys([*there, *known]))
    return replace(scope, ledgers=ordered, earlier=earlier)


def _check_fits(ledger: Ledger, earlier: Publication, scope: Scope) -> None:
    """What stays was made from the same source of data, with the settings that a page would show.

    A setting that the ledger has gained since is none that the record could differ in.
    """
    again = f"compute it anew and publish it with --config 'papers=[{ledger.paper},...]'"
    if (source := earlier.provenance["source"]) != scope.source:
        raise InputError(
            f"{earlier.folder} holds {ledger.paper} with data from {source!r}, these results are "
            f"with data from {scope.source!r}; {again}, or remove that folder first"
        )
    for folder, config in _configurations(ledger, scope):
        record = earlier.folder / folder / RECORD
        found = read_json(record)["config"] if record.exists() else {}
        if differing := [key for key in found if found[key] != config.get(key)]:
            raise InputError(
                f"{record} has another {differing[0]} than the ledger of {ledger.paper}; {again}"
            )


def _configurations(ledger: Ledger, scope: Scope) -> Iterator[tuple[str, dict[str, Any]]]:
    """Folder and configuration of everything that has a record at a scale."""
    for name, config in resolved_encoders(ledger, scope.scale).items():
        yield f"encoders/{name}", config
    groupings, runs = resolved_groupings(ledger, scope.scale), resolved_runs(ledger, scope.scale)
    for kind, resolved in (("groupings", groupings), ("runs", runs)):
        for name, each in resolved.items():
            for seed in each["seeds"]:
                yield f"{kind}/{name}/seed{seed}", each["config"] | {"seed": seed}


def _check_size(folder: Path, out: Path) -> None:
    sizes = {path: path.stat().st_size for path in folder.rglob("*") if path.is_file()}
    total = sum(sizes.values()) / 1e6
    if total > LIMIT_MB:
        largest = max(sorted(sizes), key=sizes.__getitem__)
        raise InputError(
            f"{out} would hold {total:.1f} MB, allowed are {LIMIT_MB}; the largest file is "
            f"{largest.relative_to(folder)} with {sizes[largest] / 1e6:.1f} MB"
        )
