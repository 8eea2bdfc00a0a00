"""k-means over clients: disjoint clusters, and the nearest one for clients that join later."""

import warnings
from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from clustered_fl.data.shares import by_first_appearance as by_appearance
from clustered_fl.errors import InputError
from clustered_fl.groupings.distances import same_group
from clustered_fl.randomness import generator
from clustered_fl.records.relatedness import Relatedness

STARTS, STEPS = 10, 1000
"""Restarts and steps of k-means. Ten restarts were scikit-learn's default at the time."""


class Clusters(NamedTuple):
    """Disjoint clusters of M clients: `groups` int64 [M] by first appearance, `centres` [k, d]."""

    groups: np.ndarray
    centres: np.ndarray

    @property
    def hosts(self) -> np.ndarray:
        """The first client of each cluster, int64 [k]."""
        return np.unique(self.groups, return_index=True)[1]

    def nearest(self, points: np.ndarray) -> np.ndarray:
        """Cluster of each point [n, d]: int64 [n]."""
        return cdist(points, self.centres).argmin(1)


def cluster(points: np.ndarray, k: int, seed: int) -> Clusters:
    """k-means of points [M, d] by Lloyd's algorithm, until no client changes its cluster.

    If points coincide, there may be fewer than k clusters.

    Raises: InputError if there are more clusters than clients.
    """
    if k > len(points):
        raise InputError(f"{k} clusters of {len(points)} clients; allowed are 1 to {len(points)}")
    draw = int(generator(seed, "clusters of clients").integers(2**31))
    means = KMeans(k, n_init=STARTS, max_iter=STEPS, tol=0, random_state=draw)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        groups = by_appearance(means.fit(points).labels_)
    centres = [points[groups == group].mean(0) for group in range(groups.max() + 1)]
    return Clusters(groups, np.stack(centres))


def related(points: np.ndarray, clusters: Clusters) -> Relatedness:
    """Relate clients of the same cluster, and place newcomers, whose points [n, d] come last.

    Raises: InputError if the clusters are not numbered from 0 without gaps, one per centre.
    """
    if not np.array_equal(np.unique(clusters.groups), np.arange(len(clusters.centres))):
        raise InputError("`groups` must be numbered from 0 without gaps, one for each centre")
    number, signatures = len(clusters.groups), points[:, None].astype(np.float32)
    placed = clusters.hosts[clusters.nearest(points[number:])]
    distances = cdist(points[:number], points[:number]).astype(np.float32)
    alike, never = same_group(clusters.groups), np.zeros((0, 0), np.uint8)
    sent = (distances, signatures, signatures[:number])
    return Relatedness(alike, clusters.groups, placed, never, *sent)
