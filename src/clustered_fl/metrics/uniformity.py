"""How alike the label distributions within clusters are (REPA eq. 7 and Fig. 2)."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from clustered_fl.groupings.profiles.clusters import cluster
from clustered_fl.metrics.correlation import label_similarity
from clustered_fl.randomness import generator

REPEATS = 20
"""Random assignments that are averaged."""


def uniformity(groups: np.ndarray, counts: np.ndarray) -> float:
    """U(C): the mean over clusters of the mean cosine of d_i and d_j over their pairs.

    The printed sum over i, j with i /= j would count every pair twice and give up to 2. A cluster
    of one client has no pair and does not count; NaN if all are such.

    Args:
        groups: [M] cluster of each client.
        counts: d_i, [M, classes].
    """
    return mean_within(groups, label_similarity(counts))


def mean_within(groups: np.ndarray, similarity: np.ndarray) -> float:
    """Equation 7 for any similarity [M, M] of clients."""
    members = (np.flatnonzero(groups == group) for group in np.unique(groups))
    found = [_mean_pair(similarity[np.ix_(own, own)]) for own in members if len(own) > 1]
    return float(np.mean(found)) if found else float("nan")


def _mean_pair(similarity: np.ndarray) -> float:
    return float(similarity[np.triu_indices(len(similarity), 1)].mean())


def curves(
    vectors: Mapping[str, np.ndarray], counts: np.ndarray, sizes: Sequence[int], seed: int
) -> pd.DataFrame:
    """Uniformity of k-means for several k (Fig. 2).

    Args:
        vectors: name of a method -> its vectors of the training clients [M, d].
        counts: d_i of these clients [M, classes].
        sizes: the k.
        seed: of k-means and of the random assignments.
    Returns:
        Columns method, clusters, uniformity, singletons (clusters of one client); besides the given
        methods "distribution given" (k-means on d_i) and "random" (clients dealt to k clusters).
    """
    points = {**vectors, "distribution given": counts.astype(np.float64)}
    rows = [
        _row(method, k, cluster(own, k, seed).groups, counts)
        for method, own in points.items()
        for k in sizes
    ]
    dealt = [_row("random", k, own, counts) for k in sizes for own in _dealt(len(counts), k, seed)]
    means = pd.DataFrame(dealt).groupby(["method", "clusters"], as_index=False).mean()
    return pd.concat([pd.DataFrame(rows), means], ignore_index=True)


def _dealt(clients: int, k: int, seed: int) -> Iterator[np.ndarray]:
    """Random assignments of clients to k clusters."""
    for repeat in range(REPEATS):
        yield generator(seed, "random clusters", k, repeat).integers(k, size=clients)


def _row(method: str, k: int, groups: np.ndarray, counts: np.ndarray) -> dict[str, Any]:
    alone = int((np.bincount(groups) == 1).sum())
    about = {"method": method, "clusters": k, "uniformity": uniformity(groups, counts)}
    return about | {"singletons": alone}
