"""k-means over clients: disjoint clusters, and the nearest one for who comes later."""

import warnings
from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from clustered_fl.errors import InputError
from clustered_fl.groupings.distances import same_group
from clustered_fl.randomness import generator
from clustered_fl.relatedness import Relatedness

STARTS, STEPS = 10, 1000
"""Of k-means. Ten were scikit-learn's default when the paper was written."""


@dataclass(frozen=True)
class Clusters:
    """Disjoint clusters of M clients.

    Attributes:
        groups: int64 [M], numbered by first appearance.
        centres: float64 [k, d], means of the clusters' points.
    """

    groups: np.ndarray
    centres: np.ndarray

    @property
    def hosts(self) -> np.ndarray:
        """The first client of each cluster, int64 [k]."""
        return np.unique(self.groups, return_index=True)[1].astype(np.int64)

    def nearest(self, points: np.ndarray) -> np.ndarray:
        """Cluster of each point [n, d]: int64 [n]."""
        if not len(points):
            return np.zeros(0, dtype=np.int64)
        return cdist(points, self.centres).argmin(1).astype(np.int64)


def cluster(points: np.ndarray, k: int, seed: int) -> Clusters:
    """k-means of points [M, d] by Lloyd's algorithm, run until nobody changes sides.

    Clients that coincide can leave fewer clusters than asked for.

    Raises:
        InputError: if there are more clusters than clients.
    """
    if k > len(points):
        raise InputError(f"{k} clusters of {len(points)} clients; allowed are 1 to {len(points)}")
    draw = int(generator(seed, "clusters of clients").integers(2**31))
    means = KMeans(k, n_init=STARTS, max_iter=STEPS, tol=0, random_state=draw)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        labels = means.fit(points).labels_
    groups = by_appearance(labels)
    centres = np.stack([points[groups == group].mean(0) for group in range(groups.max() + 1)])
    return Clusters(groups, centres)


def by_appearance(labels: np.ndarray) -> np.ndarray:
    """Labels [n] as numbers from 0 in the order in which they first appear: int64 [n]."""
    numbers: dict[int, int] = {}
    found = [numbers.setdefault(label, len(numbers)) for label in labels.tolist()]
    return np.array(found, dtype=np.int64)


def related(points: np.ndarray, clusters: Clusters) -> Relatedness:
    """Everybody is related to his cluster; newcomers are placed in the nearest.

    Args:
        points: [M + newcomers, d].
        clusters: of the first M.
    """
    number = len(clusters.groups)
    placed = clusters.hosts[clusters.nearest(points[number:])]
    distances = cdist(points[:number], points[:number]).astype(np.float32)
    signatures, never = points[:, None].astype(np.float32), np.zeros((0, 0), np.uint8)
    alike = same_group(clusters.groups)
    sent = (distances, signatures, signatures[:number])
    return Relatedness(alike, clusters.groups, placed, never, *sent)
