"""How FLT's public code deals out images, where that differs from what the paper says."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.optimize import brentq

# Training images of MNIST per digit.
MNIST = (5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949)


def padding(images: Sequence[int], clients_per_cluster: int, per_label: int) -> pd.DataFrame:
    """Copies of one image that stand in for images that do not exist (Scenario 1).

    Client j of a cluster takes images [300 j, 300 (j + 1)) of each of its labels from a list that
    is filled up with -1, which then means the last image of the training set: on MNIST an 8
    (mnist_noniid_cluster in src/datasets/sampling.py). The paper says 600 samples each.

    Args:
        images: training images of each label.
        per_label: images of a label that a client is to get.
    Returns: label, client (of the cluster), images (real ones), copies.
    """
    rows = []
    for label, count in enumerate(images):
        for client in range(clients_per_cluster):
            first = client * per_label
            real = int(np.clip(count - first, 0, per_label))
            rows.append((label, client, real, per_label - real))
    return pd.DataFrame(rows, columns=["label", "client", "images", "copies"])


def coded_sizes(samples: int, clients: int) -> np.ndarray:
    """Samples of each client of a cluster in Scenario 4, as the public code deals them [clients].

    Half of the samples are shared equally, the rest grows as exp(x i^2) with the client's number i
    from 1, and x such that all are used; what rounding down leaves goes to the first client
    (emnist_noniid_cluster in src/datasets/sampling.py).
    """
    base = samples // (2 * clients)
    squares = np.arange(1, clients + 1) ** 2
    rest = samples - base * clients
    rate = brentq(lambda x: np.exp(x * squares).sum() - rest, 0, np.log(rest) / clients**2)
    sizes = np.floor(base + np.exp(rate * squares)).astype(int)
    sizes[0] += samples - sizes.sum()
    return sizes


def power_law_sizes(samples: int, clients: int, largest: float) -> np.ndarray:
    """What the paper says instead: sizes that fall as a power of the rank [clients], not rounded.

    The exponent is the one at which the largest client has `largest` samples and all together
    `samples`.
    """
    ranks = np.arange(1.0, clients + 1)
    exponent = brentq(lambda a: largest * (ranks**-a).sum() - samples, 0, 50)
    return largest * ranks**-exponent


def client_sizes(samples: int, clients: int) -> pd.DataFrame:
    """Both, from the largest client to the smallest.

    Returns: rule ("code", "power law"), rank (from 1), samples.
    """
    coded = np.sort(coded_sizes(samples, clients))[::-1]
    sizes = {"code": coded, "power law": power_law_sizes(samples, clients, coded[0])}
    ranks = np.arange(1, clients + 1)
    parts = [
        pd.DataFrame({"rule": rule, "rank": ranks, "samples": np.asarray(each, dtype=float)})
        for rule, each in sizes.items()
    ]
    return pd.concat(parts, ignore_index=True)
