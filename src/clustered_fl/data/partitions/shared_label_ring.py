"""Clusters in a ring, each sharing one label with the next (FLT Scenario 2)."""

from typing import Literal

import numpy as np

from clustered_fl.data.dataset import Dataset
from clustered_fl.data.federation import Federation
from clustered_fl.data.label_clusters import assemble, rows_of
from clustered_fl.data.shares import group_of_clients
from clustered_fl.errors import InputError
from clustered_fl.randomness import generator


def build(
    dataset: Dataset,
    seed: int,
    clients: int,
    groups: int,
    samples: int,
    sampling: Literal["blocks", "random"] = "blocks",
) -> Federation:
    """Cluster c holds labels 2c, 2c + 1 and 2c + 2 of a random permutation, the last closes a ring.

    Neighbouring clusters hold the *same images* of the label that they share, as in FLT's code;
    the paper does not say. "blocks" gives every client of a cluster images of its own (Table II);
    "random" draws each client's images by themselves, so that clients overlap (the code's ablation,
    Table V).

    Args:
        clients, groups: numbers of clients and of clusters.
        samples: images of each label that a client holds.
        sampling: how they are chosen.
    Raises:
        InputError: if there are too few labels or images.
    """
    classes = len(dataset.classes)
    if groups < 2 or 2 * groups > classes:
        raise InputError(
            f"a ring of {groups} clusters; allowed are 2 to {classes // 2} for {classes} labels"
        )
    ring = generator(seed, "labels").permutation(classes)[: 2 * groups]
    own = [ring[np.arange(2 * g, 2 * g + 3) % len(ring)] for g in range(groups)]
    members = group_of_clients(clients, groups)
    place = np.concatenate([np.arange((members == g).sum()) for g in range(groups)])
    train = [
        np.concatenate(
            [
                _images(dataset, label, int(j), samples, sampling, (seed, client))
                for label in own[group]
            ]
        )
        for client, (group, j) in enumerate(zip(members, place, strict=True))
    ]
    return assemble(dataset, own, train, members)


def _images(
    dataset: Dataset,
    label: int,
    place: int,
    samples: int,
    sampling: str,
    key: tuple[int, int],
) -> np.ndarray:
    """Images of one label for the client at `place` in its cluster; `key` is (seed, client)."""
    rows = rows_of(dataset, int(label), key[0])
    needed = samples if sampling == "random" else (place + 1) * samples
    if not samples >= 1 or needed > len(rows):
        raise InputError(
            f"{samples} images of label {label} for client {key[1]} need {needed}, "
            f"there are {len(rows)}"
        )
    if sampling == "random":
        rng = generator(key[0], "images", key[1], int(label))
        return rng.choice(rows, samples, replace=False)
    return rows[place * samples : (place + 1) * samples]
