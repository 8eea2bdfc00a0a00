"""Clusters of clients with the same few labels, tested on all test images of these labels."""

from collections.abc import Sequence

import numpy as np

from clustered_fl.data.dataset import Dataset
from clustered_fl.data.federation import Federation
from clustered_fl.data.shares import Shares, last_of_each
from clustered_fl.randomness import generator


def rows_of(dataset: Dataset, label: int, seed: int) -> np.ndarray:
    """Training rows of one label in a random order that depends on the seed only.

    Some copies are sorted by appearance (in one copy of CIFAR-10, the mean brightness of blocks of
    166 airplanes varies seven times as much as by chance), so clients with blocks would differ.
    """
    rows = np.flatnonzero(dataset.y[: dataset.train_rows] == label)
    return generator(seed, "order of rows", label).permutation(rows)


def assemble(
    dataset: Dataset,
    labels: Sequence[np.ndarray],
    train: Shares,
    groups: np.ndarray,
    newcomers: int = 0,
    shuffled_by: int | None = None,
    changed: Sequence[tuple[int, int, np.ndarray]] = (),
) -> Federation:
    """A federation of clients that are tested on all test images of their cluster's labels.

    Source of the rule for tests: FLT's `sampling.py`, lines 246-274.

    Args:
        labels: of each cluster.
        train: rows of each client, cluster after cluster.
        newcomers: number of clients of each cluster that join later, its last unchanged ones.
        shuffled_by: seed of a random order of the clients; None leaves them sorted by cluster.
        changed: clients whose data change (number, new cluster, new rows); they join as newcomers.
    Raises: InputError if a cluster would have no client that stays unchanged throughout.
    """
    order, moving = np.arange(len(train)), [client for client, _, _ in changed]
    if shuffled_by is not None:
        order = generator(shuffled_by, "order of clients").permutation(order)
    late = last_of_each(groups, order[~np.isin(order, moving)], newcomers)
    order = np.concatenate([order[~np.isin(order, late)], late])
    rows = [*(train[client] for client in order), *(new for _, _, new in changed)]
    now = np.array([*groups[order], *(group for _, group, _ in changed)], np.int64)
    before = np.array([-1] * len(late) + [*np.argsort(order)[moving]], np.int64)
    maps = np.tile(np.arange(len(dataset.classes)), (len(rows), 1))
    own = dataset.y[dataset.train_rows :]
    tests = tuple(dataset.train_rows + np.flatnonzero(np.isin(own, each)) for each in labels)
    return Federation(tuple(rows), tests, now, maps, now, len(before), before)
