"""What is committed of the results: the report with pictures and tables, and nothing that trains.

Nothing else writes to `figures/`. Executed notebooks are left out, because no two executions are
the same byte for byte; PDF and LaTeX too, because SVG and Markdown show the same.
"""

from dataclasses import replace
from pathlib import Path

from clustered_fl.errors import InputError
from clustered_fl.files import read_json
from clustered_fl.ledger import load_ledger
from clustered_fl.report import site
from clustered_fl.report.entries import Publication, Scope
from clustered_fl.report.evidence import VERDICTS
from clustered_fl.report.folder import MARK, replacing_folder
from clustered_fl.report.verdicts import read_verdicts

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
        _check_source(paper, earlier, scope)
        known[paper] = load_ledger(ledgers / f"{paper}.yaml")
    ordered = tuple(known[paper] for paper in dict.fromkeys([*there, *known]))
    return replace(scope, ledgers=ordered, earlier=earlier)


def _check_source(paper: str, earlier: Publication, scope: Scope) -> None:
    """What stays was made from the same source of data as what comes, which a page says of all."""
    if (source := earlier.provenance["source"]) != scope.source:
        raise InputError(
            f"{earlier.folder} holds {paper} with data from {source!r}, these results are "
            f"with data from {scope.source!r}; compute it anew and publish it with "
            f"--config 'papers=[{paper},...]', or remove that folder first"
        )


def _check_size(folder: Path, out: Path) -> None:
    sizes = {path: path.stat().st_size for path in folder.rglob("*") if path.is_file()}
    total = sum(sizes.values()) / 1e6
    if total > LIMIT_MB:
        largest = max(sorted(sizes), key=sizes.__getitem__)
        raise InputError(
            f"{out} would hold {total:.1f} MB, allowed are {LIMIT_MB}; the largest file is "
            f"{largest.relative_to(folder)} with {sizes[largest] / 1e6:.1f} MB"
        )
