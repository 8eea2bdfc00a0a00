"""What is committed of the results: the report with pictures and tables, and nothing that trains.

Nothing else writes to `figures/`. Executed notebooks are left out, because no two executions are
the same byte for byte; PDF and LaTeX too, because SVG and Markdown show the same.
"""

from pathlib import Path

from clustered_fl.errors import InputError
from clustered_fl.report import site
from clustered_fl.report.entries import Scope
from clustered_fl.report.evidence import VERDICTS
from clustered_fl.report.folder import replacing_folder
from clustered_fl.report.verdicts import read_verdicts

SUFFIXES = ("png", "svg", "csv", "md")
LIMIT_MB = 25  # three papers take 18 at desktop, half of it pictures


def publish(scope: Scope, out: Path) -> None:
    """Write the report, without what is not worth committing, in the place of a former one.

    Args:
        scope: which results.
        out: folder, usually `figures/<scale>`.
    Raises:
        InputError: if there are no verdicts, or the folder would be too large to commit; what was
            published before then stays. Or if it would remove what is published of another paper.
    """
    if not (scope.results / VERDICTS).exists():
        raise InputError(
            f"{scope.results / VERDICTS} does not exist; evaluate the claims before publishing"
        )
    _check_papers(scope, out)
    with replacing_folder(out) as beside:
        site.write(scope, beside, SUFFIXES)
        _check_size(beside, out)


def _check_papers(scope: Scope, out: Path) -> None:
    """Nothing that is published of a paper would be lost, for the folder is replaced as a whole."""
    if not (out / VERDICTS).exists():
        return
    there = dict.fromkeys(row.paper for row in read_verdicts(out / VERDICTS, scope.scale))
    chosen = [ledger.paper for ledger in scope.ledgers]
    if lost := [paper for paper in there if paper not in chosen]:
        every = ",".join([*lost, *chosen])
        raise InputError(
            f"{out} holds results of {', '.join(lost)} too, which would be removed; publish all of "
            f"them with --config 'papers=[{every}]', or remove that folder first"
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
