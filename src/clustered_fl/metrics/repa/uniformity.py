"""Similarity of label distributions within clusters (REPA eq. 7 and Fig. 2)."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from clustered_fl.groupings.profiles.clusters import cluster
from clustered_fl.metrics.repa.correlation import label_similarity
from clustered_fl.randomness import generator

REPEATS = 20  # random assignments to average


def uniformity(groups: np.ndarray, counts: np.ndarray) -> float:
    """U(C): the mean over clusters of the mean cosine of d_i and d_j (`counts`) over their pairs.

    The printed sum over i, j with i /= j would count every pair twice and give up to 2. Clusters of
    one client have no pairs and are ignored; NaN if there are no others.
    """
    return mean_within(groups, label_similarity(counts))


def mean_within(groups: np.ndarray, similarity: np.ndarray) -> float:
    """Equation 7 for any similarity [M, M] of clients."""
    found = []
    for group in np.unique(groups):
        own = np.flatnonzero(groups == group)
        if len(own) > 1:
            pairs = similarity[np.ix_(own, own)][np.triu_indices(len(own), 1)]
            found.append(float(pairs.mean()))
    return float(np.mean(found)) if found else float("nan")


def curves(
    vectors: Mapping[str, np.ndarray], counts: np.ndarray, sizes: Sequence[int], seed: int
) -> pd.DataFrame:
    """Uniformity of k-means on methods' vectors [M, d] and on d_i for several k (Fig. 2).

    Columns: method, clusters, uniformity, singletons (clusters of one client); besides the given
    methods "distribution given" (k-means on d_i) and "random" (clients dealt to k clusters).
    """
    points = {**vectors, "distribution given": counts.astype(np.float64)}
    groups = {(name, k): [cluster(v, k, seed).groups] for name, v in points.items() for k in sizes}
    for k in sizes:
        draws = [generator(seed, "random clusters", k, repeat) for repeat in range(REPEATS)]
        groups["random", k] = [draw.integers(k, size=len(counts)) for draw in draws]
    rows = [
        (method, k, uniformity(each, counts), (np.bincount(each) == 1).sum())
        for (method, k), found in groups.items()
        for each in found
    ]
    table = pd.DataFrame(rows, columns=["method", "clusters", "uniformity", "singletons"])
    return table.groupby(["method", "clusters"], sort=False, as_index=False).mean()
