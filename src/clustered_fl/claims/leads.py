"""By how many points runs are ahead of others, however their accuracy is read."""

from collections.abc import Callable, Sequence
from itertools import product
from typing import Literal

from clustered_fl.claims.bounds import Measured
from clustered_fl.claims.evidence import Evidence
from clustered_fl.claims.judging import Estimate
from clustered_fl.errors import InputError

Take = Literal["least", "largest"]
TAKE = {"least": min, "largest": max}


def leads(
    evidence: Evidence,
    pairs: Sequence[tuple[str, str]],
    accuracy: Callable[[str], Estimate],
    take: Take,
) -> Measured:
    """The lead of every pair, and "<take> lead" of all.

    A pair is named by what tells the pairs apart: the column, else our run, else the other one.

    Args:
        pairs: of our run and the other one.
        accuracy: of a run, in %.
        take: of several pairs with one name, and of all together.
    """
    found: dict[str, list[float]] = {}
    for name, (ours, theirs) in zip(_names(evidence, pairs), pairs, strict=True):
        found.setdefault(name, []).append(accuracy(ours) - accuracy(theirs))
    best = {name: TAKE[take](values) for name, values in found.items()}
    return {f"{take} lead": TAKE[take](best.values())} | best


def of_one_column(
    evidence: Evidence, of: Sequence[str], over: Sequence[str]
) -> list[tuple[str, str]]:
    """All pairs of two different runs in one column of a table; InputError if there are none."""
    column = {run: evidence.label(run).column for run in (*of, *over)}
    pairs = [(a, b) for a, b in product(of, over) if a != b and column[a] == column[b]]
    if not pairs:
        raise InputError(
            f"none of {', '.join(of)} is in the same column of a table as another of "
            f"{', '.join(over)}, so nothing is compared"
        )
    return pairs


def _names(evidence: Evidence, pairs: Sequence[tuple[str, str]]) -> list[str]:
    for key in ("column", "row"):
        names = [getattr(evidence.label(ours), key) for ours, _ in pairs]
        if len(set(names)) > 1:
            return names
    return [f"over {evidence.label(theirs).row}" for _, theirs in pairs]
