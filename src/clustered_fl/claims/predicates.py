"""A claim as a predicate: what is measured on one seed, and the bounds within which it holds.

Bounds are text, so that what judges is also what the reader sees: the same bounds judge every seed
and the mean over seeds, and stand beside the verdict.
"""

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from clustered_fl.claims.evidence import Evidence

Measured = dict[str, float]
"""Named numbers; a number that does not exist (no such round, no such split) is NaN."""

Measure = Callable[[Evidence], Measured]

Bounds = Mapping[str, str]
"""Measured name -> bound, for example {"accuracy": ">= 0.15 and <= 0.3"}; all must hold."""

COMPARISONS = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "=": operator.eq,
}


@dataclass(frozen=True)
class Predicate:
    """One claim of the ledger, testable.

    Attributes:
        id: the claim's id in the ledger.
        bounds: of the measured numbers; numbers without a bound are shown and not judged.
        measure: numbers of one seed.
    """

    id: str
    bounds: Bounds
    measure: Measure

    def holds(self, measured: Measured) -> bool:
        """Whether the statement is true of such numbers."""
        return all(is_within(measured[name], bound) for name, bound in self.bounds.items())

    @property
    def text(self) -> str:
        """The bounds as the reader sees them: "gap > 0; correct = 1"."""
        return "; ".join(f"{name} {bound}" for name, bound in self.bounds.items())


def is_within(value: float, bound: str) -> bool:
    """Whether `value` satisfies `bound`, comparisons joined by "and".

    Raises:
        ValueError: if the bound is not of that form.
    """
    comparisons = [part.split() for part in bound.split(" and ")]
    return all(COMPARISONS[sign](value, float(limit)) for sign, limit in comparisons)


class Predicates(dict[str, Predicate]):
    """Predicates by claim id; used as a decorator factory by the modules of one paper."""

    def __call__(self, claim: str, bounds: Bounds) -> Callable[[Measure], Measure]:
        """Register the decorated function as what claim `claim` measures."""

        def register(measure: Measure) -> Measure:
            if claim in self:
                raise ValueError(f"claim {claim} has two predicates")
            self[claim] = Predicate(claim, bounds, measure)
            return measure

        return register
