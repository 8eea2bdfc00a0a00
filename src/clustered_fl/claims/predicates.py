"""A claim as a predicate: what is measured on one seed, and when the statement holds.

The same `holds` judges every seed and the mean over seeds, so a verdict cannot rest on a test that
the reader does not see.
"""

from collections.abc import Callable
from dataclasses import dataclass

from clustered_fl.claims.evidence import Evidence

Measured = dict[str, float]
"""Named numbers; a number that does not exist (no such round, no such split) is NaN."""


@dataclass(frozen=True)
class Predicate:
    """One claim of the ledger, testable.

    Attributes:
        id: the claim's id in the ledger.
        measure: numbers of one seed.
        holds: whether the statement is true of such numbers.
    """

    id: str
    measure: Callable[[Evidence], Measured]
    holds: Callable[[Measured], bool]


class Predicates(dict[str, Predicate]):
    """Predicates by claim id; used as a decorator factory by the modules of one paper."""

    def __call__(
        self, claim: str, holds: Callable[[Measured], bool]
    ) -> Callable[[Callable[[Evidence], Measured]], Callable[[Evidence], Measured]]:
        """Register the decorated function as what claim `claim` measures."""

        def register(measure: Callable[[Evidence], Measured]) -> Callable[[Evidence], Measured]:
            if claim in self:
                raise ValueError(f"claim {claim} has two predicates")
            self[claim] = Predicate(claim, measure, holds)
            return measure

        return register
