"""Clusters of consecutive labels with clients of very different sizes (FLT Scenario 4)."""

import numpy as np

from clustered_fl.data.dataset import Dataset
from clustered_fl.data.federation import Federation
from clustered_fl.data.label_clusters import assemble, rows_of
from clustered_fl.data.shares import Number
from clustered_fl.errors import InputError
from clustered_fl.randomness import generator


def build(
    dataset: Dataset, seed: int, clients: Number, labels: Number = 5, zero_row: bool = False
) -> Federation:
    """Labels in their order, so many to a cluster (the last may have fewer), clients equally many.

    A cluster's images are shuffled and cut to sizes that grow as `sizes` says, so that a client
    holds a random subset of the labels.

    Args:
        clients: their number, a multiple of the number of clusters.
        labels: in a cluster.
        zero_row: a mistake of FLT's code (`flt.py`, lines 122-132): the list of the last cluster's
            labels is filled up with zeros, so that its clients are tested on label 0 too, which
            none of them has seen.
    Raises: InputError if clusters cannot have equally many clients, or too few images.
    """
    classes = len(dataset.classes)
    own = [np.arange(first, min(first + labels, classes)) for first in range(0, classes, labels)]
    if clients % len(own) or clients < 2 * len(own):
        allowed = f"multiples of the {len(own)} clusters, two each or more"
        raise InputError(f"{clients} clients; allowed are {allowed}")
    each, train = clients // len(own), []
    for group, members in enumerate(own):
        rows = np.concatenate([rows_of(dataset, int(label), seed) for label in members])
        shuffled = generator(seed, "shares", group).permutation(rows)
        train += np.split(shuffled, np.cumsum(sizes(len(rows), each))[:-1])
    tested = [np.append(m, 0) if zero_row and len(m) < labels else m for m in own]
    return assemble(dataset, tested, train, np.repeat(np.arange(len(own)), each))


def sizes(images: int, clients: int) -> np.ndarray:
    """Images of each client of a cluster, int64 [clients]; InputError if there are too few.

    Half of the images are dealt equally, the other half as exp(x i^2) with i the number of the
    client from 1 and x such that they are used up; fractions are cut, and what is left goes to the
    first (FLT's `emnist_noniid_cluster`; the paper calls it a power law, which it is not).
    """
    from scipy.optimize import brentq  # half a second, which reading the settings would take too

    if images < clients:
        raise InputError(f"{images} images for {clients} clients of a cluster; too few")
    base, squares = images // 2 // clients, np.arange(1, clients + 1) ** 2.0
    rest = images - base * clients
    most = np.log(rest + 1) / squares[-1]
    x = brentq(lambda each: np.exp(each * squares).sum() - rest, 0.0, most)
    found = np.floor(base + np.exp(x * squares)).astype(np.int64)
    found[0] += images - found.sum()
    return found
