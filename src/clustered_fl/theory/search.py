"""Search for counterexamples to an inequality, at random and by hill climbing."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pandas as pd

# Rounding error of float64 in cosines near one, with a safety margin.
ROUNDING = 1e-9

Margin = Callable[[np.ndarray], np.ndarray]


class Check(NamedTuple):
    """One row of the table of checks.

    source: place in the paper; note: meaning of the outcome.
    trials: cases to which the statement applies; violations: those that contradict it.
    value, value_name: one further number and its meaning.
    """

    check: str
    source: str
    trials: int
    violations: int
    value: float
    value_name: str
    note: str


def counted(
    check: str, source: str, wrong: np.ndarray | pd.Series, value: float, value_name: str, note: str
) -> Check:
    """The row of a statement; `wrong` marks the cases that contradict it."""
    return Check(check, source, wrong.size, int(wrong.sum()), float(value), value_name, note)


class Search(NamedTuple):
    """Cases to which a statement applied, those that violated it, and the largest margin seen."""

    trials: int
    violations: int
    largest: float

    def row(self, check: str, source: str, note: str) -> Check:
        """The table row of this search; its value is the largest margin, positive if violated."""
        return Check(check, source, *self, "largest left side minus right side", note)


def search(margin: Margin, start: np.ndarray, random: np.random.Generator, steps: int) -> Search:
    """Evaluate `margin` at every start, then climb from each towards larger margins.

    `margin` maps states [starts, ...] to [starts]: left side minus right side of the inequality,
    -inf where it does not apply. A step adds normal noise of a random magnitude between 1e-5 and 1
    and is kept if the margin grows; every evaluation counts as a trial. No gradients, because
    margins have kinks.
    """
    state, best = start.copy(), margin(start)
    found = [best]
    shape = (len(start),) + (1,) * (start.ndim - 1)
    for _ in range(steps):
        size = 10.0 ** random.uniform(-5, 0, shape)
        candidate = state + size * random.standard_normal(state.shape)
        value = margin(candidate)
        better = value > best
        state[better], best[better] = candidate[better], value[better]
        found.append(value)
    return summarise(np.concatenate(found))


def summarise(margins: np.ndarray) -> Search:
    """Count trials and violations among margins (-inf: does not apply)."""
    applies = margins[np.isfinite(margins)]
    largest = float(applies.max()) if applies.size else float("nan")
    return Search(applies.size, int((applies > ROUNDING).sum()), largest)


def pooled(searches: list[Search]) -> Search:
    """The combined result of several searches."""
    trials, violations, largest = zip(*searches, strict=True)
    return Search(sum(trials), sum(violations), float(np.nanmax(largest)))


def wild_start(random: np.random.Generator, *shape: int) -> np.ndarray:
    """Random vectors [..., dimension] in all directions, with lengths over several magnitudes."""
    return random.standard_normal(shape) * np.exp(random.standard_normal((*shape[:-1], 1)))


def in_ball(raw: np.ndarray, radius: np.ndarray) -> np.ndarray:
    """Map any vectors [..., dimension] into open balls of the given radii [...]."""
    return raw * (radius / (1 + np.linalg.norm(raw, axis=-1)))[..., None]


def ratio(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """Lengths of vectors [..., dimension] over those of others, pair by pair."""
    return np.linalg.norm(part, axis=-1) / np.linalg.norm(whole, axis=-1)


def cosine(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Cosine of vectors [..., dimension], pair by pair; 0 if either is zero."""
    lengths = np.linalg.norm(first, axis=-1) * np.linalg.norm(second, axis=-1)
    product = (first * second).sum(axis=-1)
    return np.divide(product, lengths, out=np.zeros_like(product), where=lengths > 0)


def similarities(vectors: np.ndarray) -> np.ndarray:
    """Cosines of all pairs of vectors [trials, k, dimension] -> [trials, k, k]."""
    return cosine(vectors[:, :, None], vectors[:, None, :])
