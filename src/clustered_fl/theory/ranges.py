"""Ranges of settings of studies, as annotations: `options.call` checks them, in the plan too."""

from collections.abc import Sequence
from typing import Annotated, TypeVar

from pydantic import AfterValidator, Field

from clustered_fl.errors import InputError

Item = TypeVar("Item")
Pair = tuple[int, int]


def _ascending(pair: Pair) -> Pair:
    if pair[1] < pair[0]:
        raise ValueError("the second number must be at least the first")
    return pair


TwoOrMore = Annotated[int, Field(ge=2)]
ThreeOrMore = Annotated[int, Field(ge=3)]
Share = Annotated[float, Field(ge=0, le=1)]
Fraction = Annotated[float, Field(gt=0, lt=1)]
ErrorRate = Annotated[float, Field(gt=0, lt=0.5)]
"""Of a choice between two, better than by chance and not perfect."""
Listed = Annotated[Sequence[Item], Field(min_length=1)]
Ascending = AfterValidator(_ascending)
"""For a pair of numbers."""


def require_at_least(minimum: float, **settings: float) -> None:
    """Refuse settings that are too small for another one, which no annotation can express.

    Raises: InputError naming the first.
    """
    for name, value in settings.items():
        if value < minimum:
            raise InputError(f"setting {name} is {value}, but at least {minimum} is needed")
