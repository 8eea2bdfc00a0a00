"""Clusters with disjoint labels (FLT Scenario 1, "pathological" by cluster)."""

import numpy as np

from clustered_fl.data.dataset import Dataset
from clustered_fl.data.federation import Federation
from clustered_fl.data.label_clusters import assemble, rows_of
from clustered_fl.data.shares import Count, Number, group_of_clients
from clustered_fl.errors import InputError
from clustered_fl.randomness import generator


def build(
    dataset: Dataset,
    seed: int,
    clients: Number,
    groups: Number,
    labels: Number = 2,
    samples: Number | None = None,
    newcomers: Count = 0,
    changed: Count = 0,
    shuffled: bool = False,
    padded: bool = False,
) -> Federation:
    """A random permutation of labels is cut into clusters, and each label into equal blocks.

    Client j of a cluster holds block j of each of its labels.

    Args:
        clients: number of clients.
        groups: number of clusters.
        labels: labels per cluster.
        samples: images per label and client; None for all.
        newcomers: number of clients of each cluster that join later.
        changed: number of other clients, the first ones of each cluster, that later get data like
            the next cluster's.
        shuffled: number clients in random order instead of by cluster.
        padded: reproduce a bug of FLT's code (`sampling.py`, lines 57-99): block sizes assume
            equally frequent labels, and where a label runs out, the dataset's last training image,
            whatever its label, replaces the missing ones.
    Raises: InputError if there are too few labels, images or clients.
    """
    classes, needed = len(dataset.classes), groups * labels
    if needed > classes:
        raise InputError(f"{groups} clusters of {labels} labels need {needed}, there are {classes}")
    drawn = generator(seed, "labels").permutation(classes)[:needed]
    own, members = drawn.reshape(groups, labels), group_of_clients(clients, groups)
    train, later = [], []
    for group in range(groups):
        count = int((members == group).sum()) + changed
        blocks = [_blocks(dataset, label, count, samples, padded, seed) for label in own[group]]
        held = np.concatenate(blocks, axis=1)
        train += list(held[changed:])
        later.append(held[:changed])
    moves = [
        (int(first) + i, (group + 1) % groups, rows)
        for group, first in enumerate(np.searchsorted(members, range(groups)))
        for i, rows in enumerate(later[(group + 1) % groups])
    ]
    return assemble(dataset, own, train, members, newcomers, seed if shuffled else None, moves)


def _blocks(
    dataset: Dataset, label: int, clients: int, samples: int | None, padded: bool, seed: int
) -> np.ndarray:
    """Rows of one label, [clients, rows of each]."""
    rows = rows_of(dataset, int(label), seed)
    size = dataset.train_rows // len(dataset.classes) // clients if padded else len(rows) // clients
    size = size if samples is None else samples
    if padded:
        missing = max(0, size * clients - len(rows))
        rows = np.concatenate([rows, np.full(missing, dataset.train_rows - 1)])
    if not 1 <= size <= len(rows) // clients:
        raise InputError(
            f"{size} images of label {label} for each of {clients} clients; "
            f"allowed are 1 to {len(rows) // clients}"
        )
    return rows[: clients * size].reshape(clients, size)
