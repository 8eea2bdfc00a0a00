"""Clients with their own test images, and holdout clients with nothing else."""

from collections.abc import Sequence

import numpy as np

from clustered_fl.data.dataset import Dataset
from clustered_fl.data.federation import Federation
from clustered_fl.data.shares import Shares, by_first_appearance
from clustered_fl.randomness import generator


def with_tests(
    dataset: Dataset, train: Shares, tests: Shares, groups: np.ndarray | None, newcomers: int = 0
) -> Federation:
    """A federation of clients with their own tests, without relabelling.

    `groups`: true groups int64 [clients], None for a single one.
    """
    maps = np.tile(np.arange(len(dataset.classes)), (len(train), 1))
    groups = np.zeros(len(train), dtype=np.int64) if groups is None else groups
    return Federation(tuple(train), tuple(tests), np.arange(len(train)), maps, groups, newcomers)


def with_validation(
    dataset: Dataset,
    shares: Shares,
    newcomers: int,
    held_out: float,
    seed: int,
    groups: np.ndarray | None = None,
) -> Federation:
    """A federation in which every client has its own training and validation images.

    The last clients are REPA's holdout clients C_h, "which only have a validation set". A grouping
    places them by these images, and they are tested on them.

    Args:
        shares: rows of each client, holdout clients last.
        newcomers: number of holdout clients.
        held_out: fraction of the other clients' rows that is their validation set.
    """
    there = len(shares) - newcomers
    train, tests = hold_out(shares[:there], held_out, seed)
    late = shares[there:]
    return with_tests(dataset, [*train, *late], [*tests, *late], groups, newcomers)


def hold_out(shares: Shares, fraction: float, seed: int) -> tuple[Shares, Shares]:
    """Random training and validation rows of each client, with at least one for validation."""
    train, tests = [], []
    for client, rows in enumerate(shares):
        shuffled = generator(seed, "validation", client).permutation(rows)
        cut = max(1, round(fraction * len(rows)))
        tests.append(shuffled[:cut])
        train.append(shuffled[cut:])
    return train, tests


def same_labels(labels: Sequence[np.ndarray]) -> np.ndarray:
    """Groups int64 [clients] by equal sets of labels, numbered by first appearance."""
    return by_first_appearance(tuple(np.unique(own).tolist()) for own in labels)
