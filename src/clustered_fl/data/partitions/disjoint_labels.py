"""Clusters without a label in common (FLT Scenario 1, "pathological" by cluster)."""

from typing import Annotated

import numpy as np
from pydantic import Field

from clustered_fl.data.dataset import Dataset
from clustered_fl.data.federation import Federation
from clustered_fl.data.label_clusters import assemble, rows_of
from clustered_fl.data.shares import group_of_clients
from clustered_fl.errors import InputError
from clustered_fl.randomness import generator

Count = Annotated[int, Field(ge=0)]


def build(
    dataset: Dataset,
    seed: int,
    clients: int,
    groups: int,
    labels: Annotated[int, Field(ge=1)] = 2,
    samples: int | None = None,
    newcomers: Count = 0,
    changed: Count = 0,
    shuffled: bool = False,
    padded: bool = False,
) -> Federation:
    """A random permutation of the labels is cut into clusters; a label is cut into equal blocks.

    Client j of a cluster holds block j of each of its labels. `padded` is a mistake of FLT's code
    (`sampling.py`, lines 57-99): blocks have the size they would have if all labels were equally
    frequent, and where a label runs out, the last training image of all, whatever it shows, stands
    in for the missing ones.

    Args:
        clients, groups, labels: numbers of clients, of clusters, and of labels in a cluster.
        samples: images of each label that a client holds; None for all there are.
        newcomers: so many clients of each cluster join later.
        changed: the data of so many others of each cluster, its first, change later to those of the
            next cluster.
        shuffled: clients in random order, not sorted by cluster.
    Raises:
        InputError: if there are too few labels, images or clients.
    """
    classes = len(dataset.classes)
    if groups * labels > classes:
        raise InputError(
            f"{groups} clusters of {labels} labels need {groups * labels}, there are {classes}"
        )
    drawn = generator(seed, "labels").permutation(classes)[: groups * labels]
    own, members = drawn.reshape(groups, labels), group_of_clients(clients, groups)
    train, later = [], []
    for group in range(groups):
        count = int((members == group).sum()) + changed
        blocks = [_blocks(dataset, label, count, samples, padded, seed) for label in own[group]]
        held = [np.concatenate(parts) for parts in zip(*blocks, strict=True)]
        train += held[changed:]
        later.append(held[:changed])
    first = np.searchsorted(members, np.arange(groups))
    moves = [
        (int(first[g]) + i, (g + 1) % groups, rows)
        for g in range(groups)
        for i, rows in enumerate(later[(g + 1) % groups])
    ]
    order_of = seed if shuffled else None
    return assemble(dataset, list(own), train, members, newcomers, order_of, moves)


def _blocks(
    dataset: Dataset, label: int, clients: int, samples: int | None, padded: bool, seed: int
) -> list[np.ndarray]:
    """Images of one label for each client."""
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
    return [rows[client * size : (client + 1) * size] for client in range(clients)]
