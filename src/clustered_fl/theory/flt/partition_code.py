"""Partitions in FLT's public code that differ from the paper."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.optimize import brentq

# Training images of MNIST per digit.
MNIST = (5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949)


def padding(images: Sequence[int], clients_per_cluster: int, per_label: int) -> pd.DataFrame:
    """Copies of one image if there are too few images for all clients (Scenario 1).

    Client j of a cluster takes images [300 j, 300 (j + 1)) of each label from a list filled up with
    -1, the last image of the training set: on MNIST an 8 (mnist_noniid_cluster in
    src/datasets/sampling.py). The paper says 600 samples each.
    Returns: label, client (of the cluster), images (real ones), copies.
    """
    label = np.repeat(np.arange(len(images)), clients_per_cluster)
    client = np.tile(np.arange(clients_per_cluster), len(images))
    real = np.clip(np.array(images)[label] - client * per_label, 0, per_label)
    counts = {"images": real, "copies": per_label - real}
    return pd.DataFrame({"label": label, "client": client, **counts})


def coded_sizes(samples: int, clients: int) -> np.ndarray:
    """Samples of each client of a cluster in Scenario 4, as the public code deals them [clients].

    Half are shared equally, the rest grows as exp(x i^2) with the client's number i from 1, and x
    such that all are used; the first client gets the rest of rounding (emnist_noniid_cluster in
    src/datasets/sampling.py).
    """
    base = samples // (2 * clients)
    squares = np.arange(1, clients + 1) ** 2
    rest = samples - base * clients
    # Above the root, which for a single client is log(rest).
    most = np.log(rest + 1) / clients**2
    rate = brentq(lambda x: np.exp(x * squares).sum() - rest, 0, most)
    sizes = np.floor(base + np.exp(rate * squares)).astype(int)
    sizes[0] += samples - sizes.sum()
    return sizes


def power_law_sizes(samples: int, clients: int, largest: float) -> np.ndarray:
    """The paper's sizes: they decrease as a power of the rank; not rounded."""
    ranks = np.arange(1.0, clients + 1)
    exponent = brentq(lambda a: largest * (ranks**-a).sum() - samples, 0, 50)
    return largest * ranks**-exponent


def client_sizes(samples: int, clients: int) -> pd.DataFrame:
    """Samples from the largest client (rank 1) to the smallest, by rule "code" and "power law"."""
    coded = np.sort(coded_sizes(samples, clients))[::-1]
    sizes = np.concatenate([coded, power_law_sizes(samples, clients, coded[0])])
    rule, rank = np.repeat(["code", "power law"], clients), np.tile(np.arange(clients) + 1, 2)
    return pd.DataFrame({"rule": rule, "rank": rank, "samples": sizes})
