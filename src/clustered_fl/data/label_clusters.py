"""Clusters of clients that hold the same few labels, and are tested on all images of them."""

from collections.abc import Sequence

import numpy as np

from clustered_fl.data.dataset import Dataset
from clustered_fl.data.federation import Federation
from clustered_fl.errors import InputError
from clustered_fl.randomness import generator

Labels = Sequence[np.ndarray]
"""The labels of each cluster."""


def rows_of(dataset: Dataset, label: int, seed: int) -> np.ndarray:
    """Training rows of one label, in a random order, the same for every client of a seed.

    The order of a copy means nothing: official files are in random order, but others keep
    look-alikes together (in one of CIFAR-10 the mean brightness of blocks of 166 consecutive
    airplanes varies seven times as much as by chance), and clients that hold blocks would then
    differ within a cluster.
    """
    rows = np.flatnonzero(dataset.y[: dataset.train_rows] == label)
    return generator(seed, "order of rows", label).permutation(rows)


def tests_of(dataset: Dataset, labels: Labels) -> tuple[np.ndarray, ...]:
    """Test rows of each cluster: all of its labels' (FLT's `sampling.py`, lines 246-274)."""
    own = dataset.y[dataset.train_rows :]
    return tuple(dataset.train_rows + np.flatnonzero(np.isin(own, each)) for each in labels)


def assemble(
    dataset: Dataset,
    labels: Labels,
    train: Sequence[np.ndarray],
    groups: np.ndarray,
    newcomers: int = 0,
    shuffled_by: int | None = None,
    changed: Sequence[tuple[int, int, np.ndarray]] = (),
) -> Federation:
    """The federation of clients that call everything by its name.

    Args:
        labels: of each cluster.
        train: rows of each client, cluster after cluster.
        groups: [clients] cluster of each.
        newcomers: so many clients of each cluster, its last that do not change, join later.
        shuffled_by: seed of a random order of the clients; None leaves them sorted by cluster.
        changed: clients whose data change: number, new cluster, new rows; they join as newcomers.
    Raises:
        InputError: if nobody of a cluster would be there from the start to the end.
    """
    order = np.arange(len(train))
    if shuffled_by is not None:
        order = generator(shuffled_by, "order of clients").permutation(order)
    steady = order[~np.isin(order, [client for client, _, _ in changed])]
    fewest = np.bincount(groups[steady], minlength=len(labels)).min()
    if newcomers >= fewest:
        raise InputError(
            f"{newcomers} newcomers of a cluster with {fewest} clients whose data do not change; "
            "one at least must be there from the start to the end"
        )
    late = np.concatenate([steady[groups[steady] == g][-newcomers:] for g in range(len(labels))])
    late = late if newcomers else late[:0]
    order = np.concatenate([order[~np.isin(order, late)], late])
    place = np.argsort(order)
    rows = [*(train[client] for client in order), *(new for _, _, new in changed)]
    now = np.concatenate([groups[order], np.array([g for _, g, _ in changed], dtype=np.int64)])
    before = [-1] * len(late) + [int(place[client]) for client, _, _ in changed]
    maps = np.tile(np.arange(len(dataset.classes)), (len(rows), 1))
    tests = tests_of(dataset, labels)
    return Federation(
        tuple(rows), tests, now, maps, now, len(late) + len(changed), np.array(before, np.int64)
    )
