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
    """Consecutive `labels` per cluster (the last may have fewer), and equally many clients.

    A cluster's images are shuffled and cut into shares of increasing size (`sizes`), so a small
    client holds a random subset of the labels.

    Args:
        clients: their number, a multiple of the number of clusters.
        labels: number per cluster.
        zero_row: reproduce a bug of FLT's code (`flt.py`, lines 122-132): the list of the last
            cluster's labels is padded with zeros, so its clients are also tested on label 0, which
            none of them holds.
    Raises: InputError if clusters cannot have equally many clients, or there are too few images.
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

    Half of the images are divided equally, the other half as exp(x i^2), where i is the number of
    the client from 1, and x is chosen to use all images. Sizes are rounded down, and the remainder
    goes to the first client (FLT's `emnist_noniid_cluster`; the paper calls it a power law, which
    it is not).
    """
    from scipy.optimize import brentq  # takes half a second, also when only settings are read

    if images < clients:
        raise InputError(f"{images} images for {clients} clients of a cluster; too few")
    base, squares = images // 2 // clients, np.arange(1, clients + 1) ** 2.0
    rest = images - base * clients
    most = np.log(rest + 1) / squares[-1]
    x = brentq(lambda each: np.exp(each * squares).sum() - rest, 0.0, most)
    found = np.floor(base + np.exp(x * squares)).astype(np.int64)
    found[0] += images - found.sum()
    return found
