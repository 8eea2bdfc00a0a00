"""Bounds within which a claim holds, as text that is both evaluated and shown."""

from collections.abc import Mapping
from math import isnan
from operator import eq, ge, gt, le, lt

from clustered_fl.errors import InputError

Measured = dict[str, float]
"""Named numbers; a number that does not exist (no such round, no such split) is NaN."""

COMPARISONS = {">": gt, ">=": ge, "<": lt, "<=": le, "=": eq}


def holds(bounds: Mapping[str, str], measured: Measured) -> bool:
    """Whether all bounds are met: measured name -> bound, for example {"gap": "> 0"}.

    Raises: InputError if a bounded number was not measured.
    """
    for name in bounds:
        if name not in measured:
            raise InputError(f"no number is called {name!r}; measured are {', '.join(measured)}")
    return all(is_within(measured[name], bound) for name, bound in bounds.items())


def is_within(value: float, bound: str) -> bool:
    """Whether `value` satisfies `bound`, comparisons joined by "and"."""
    return all(COMPARISONS[sign](value, limit) for sign, limit in parsed(bound))


def parsed(bound: str) -> list[tuple[str, float]]:
    """The comparisons of a bound: ">= 0.15 and <= 0.3" -> [(">=", 0.15), ("<=", 0.3)].

    Raises: InputError if the bound is not of that form.
    """
    allowed = "such as '>= 0.15 and <= 0.3'"
    try:
        found = [(sign, float(limit)) for sign, limit in map(str.split, bound.split(" and "))]
    except ValueError as error:
        raise InputError(f"the bound {bound!r}; allowed are {allowed}") from error
    if not COMPARISONS.keys() >= {sign for sign, _ in found}:
        raise InputError(f"the bound {bound!r}; allowed are {', '.join(COMPARISONS)}")
    if any(isnan(limit) for _, limit in found):  # no number meets it
        raise InputError(f"the bound {bound!r}; allowed are numbers, {allowed}")
    return found


def text(bounds: Mapping[str, str]) -> str:
    """The bounds as the reader sees them: "gap > 0; correct = 1"."""
    return "; ".join(f"{name} {bound}" for name, bound in bounds.items())
