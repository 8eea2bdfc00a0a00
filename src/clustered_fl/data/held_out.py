"""Clients that are tested on images of their own, and some that hold nothing but such images."""

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from pydantic import Field

from clustered_fl.data.dataset import Dataset
from clustered_fl.data.federation import Federation
from clustered_fl.randomness import generator

Fraction = Annotated[float, Field(gt=0, lt=1)]
Number = Annotated[int, Field(ge=1)]
Count = Annotated[int, Field(ge=0)]


def with_validation(
    dataset: Dataset,
    shares: Sequence[np.ndarray],
    groups: np.ndarray,
    newcomers: int,
    held_out: float,
    seed: int,
) -> Federation:
    """The federation in which every client has training and validation images of its own.

    The last clients are REPA's holdout clients C_h, "which only have a validation set": all their
    images are one, by which a grouping places them and on which they are tested. They are the
    federation's newcomers.

    Args:
        shares: rows of each client, holdout clients last.
        groups: [clients] true group of each.
        newcomers: number of holdout clients.
        held_out: part of a client's rows that is its validation set, drawn at random, at least one.
        seed: of the drawing.
    """
    train, tests = [], []
    for client, rows in enumerate(shares[: len(shares) - newcomers]):
        shuffled = generator(seed, "validation", client).permutation(rows)
        cut = max(1, round(held_out * len(rows)))
        tests.append(shuffled[:cut])
        train.append(shuffled[cut:])
    late = shares[len(train) :]
    maps = np.tile(np.arange(len(dataset.classes)), (len(shares), 1))
    own = np.arange(len(shares))
    return Federation((*train, *late), (*tests, *late), own, maps, groups, newcomers)


def same_labels(labels: Sequence[np.ndarray]) -> np.ndarray:
    """Groups int64 [clients] of those that hold the same set of labels, by first appearance."""
    numbers: dict[tuple[int, ...], int] = {}
    sets = (tuple(np.unique(own).tolist()) for own in labels)
    return np.array([numbers.setdefault(own, len(numbers)) for own in sets], dtype=np.int64)
