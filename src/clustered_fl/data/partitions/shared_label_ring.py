"""Clusters in a ring, each sharing one label with the next (FLT Scenario 2)."""

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from clustered_fl.data.dataset import Dataset
from clustered_fl.data.federation import Federation
from clustered_fl.data.label_clusters import assemble, rows_of
from clustered_fl.data.shares import Number, group_of_clients
from clustered_fl.errors import InputError
from clustered_fl.randomness import generator


def build(
    dataset: Dataset,
    seed: int,
    clients: Number,
    groups: Annotated[int, Field(ge=2)],
    samples: Number,
    sampling: Literal["blocks", "random"] = "blocks",
) -> Federation:
    """Cluster c holds labels 2c, 2c + 1 and 2c + 2, cyclically, of a random permutation.

    Neighbouring clusters hold the *same images* of their shared label, as in FLT's code; the paper
    does not say. With "blocks" the clients of a cluster have disjoint images (Table II); with
    "random" each client's images are drawn independently, so clients overlap (the code's ablation,
    Table V).

    Args:
        clients: number of clients.
        groups: number of clusters.
        samples: images per label and client.
        sampling: "blocks" (disjoint within a cluster) or "random" (drawn for each client).
    Raises: InputError if there are too few labels or images.
    """
    classes = len(dataset.classes)
    if 2 * groups > classes:
        raise InputError(
            f"a ring of {groups} clusters; allowed are 2 to {classes // 2} for {classes} labels"
        )
    ring = generator(seed, "labels").permutation(classes)[: 2 * groups]
    own = [ring[np.arange(2 * g, 2 * g + 3) % len(ring)] for g in range(groups)]
    members = group_of_clients(clients, groups)
    place = np.arange(clients) - np.searchsorted(members, members)
    starts = place * samples if sampling == "blocks" else [None] * clients
    train = []
    for client, (group, start) in enumerate(zip(members, starts, strict=True)):
        parts = [_images(dataset, int(each), samples, start, seed, client) for each in own[group]]
        train.append(np.concatenate(parts))
    return assemble(dataset, own, train, members)


def _images(
    dataset: Dataset, label: int, samples: int, start: int | None, seed: int, client: int
) -> np.ndarray:
    """A client's images of one label: those from `start` on, random ones if it is None."""
    rows = rows_of(dataset, label, seed)
    end = samples + (start or 0)
    if end > len(rows):
        raise InputError(
            f"{samples} images of label {label} for client {client} need {end}, "
            f"there are {len(rows)}"
        )
    if start is None:
        return generator(seed, "images", client, label).choice(rows, samples, replace=False)
    return rows[start:end]
