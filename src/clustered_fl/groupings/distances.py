"""Relatedness by distances between clients' points (FLT Algorithm 2, lines 16 and 17)."""

from typing import Any, Literal

import numpy as np
from scipy.cluster.hierarchy import cut_tree, leaves_list, linkage
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist

from clustered_fl.data.shares import by_first_appearance
from clustered_fl.errors import InputError
from clustered_fl.records.relatedness import Relatedness

Distance = Literal["minimum", "matching"]
Order = Literal["client", "leaf"]


def linked(signatures: np.ndarray, points: np.ndarray, settings: Any) -> Relatedness:
    """Relate clients with close points, and place newcomers, which have signatures only.

    `signatures` are [M + newcomers, k, e], `points` [M, k, u]; `settings` as in `flt.Settings`.
    """
    known, newcomers = np.split(signatures, [len(points)])
    distances = client_distances(points, settings.distance)
    related = threshold(distances, settings.gamma)
    if settings.groups is None:
        groups = components(related)
    else:
        groups = ward(related, settings.groups, settings.order)
    if settings.case == "groups":
        related = same_group(groups)
    placed, never = place(newcomers, known, groups), np.zeros((0, 0), np.uint8)
    return Relatedness(related, groups, placed, never, distances, signatures, points)


def client_distances(points: np.ndarray, kind: Distance) -> np.ndarray:
    """Distances between clients with points [M, k, u]: float32 [M, M].

    "minimum" is the printed formula: the smallest distance between a point of one and a point of
    the other. "matching" is the authors' code: points are matched to minimise the sum of squared
    distances, and the distance is the root of that sum divided by k.
    """
    clients, k, _ = points.shape
    found = np.zeros((clients, clients), dtype=np.float32)
    flat = points.reshape(clients * k, -1).astype(np.float64)
    for client in range(clients):
        own, rest = np.split(flat[client * k :], [k])
        apart = cdist(own, rest).reshape(k, -1, k).swapaxes(0, 1)
        found[client, client + 1 :] = _between(apart, kind)
    return found + found.T


def _between(apart: np.ndarray, kind: Distance) -> np.ndarray:
    """Distances of one client to others, from the distances of their points [others, k, k]."""
    if kind == "minimum":
        return apart.min((1, 2))
    squared, k = apart**2, apart.shape[1]
    sums = [costs[linear_sum_assignment(costs)].sum() for costs in squared]
    return np.sqrt(np.array(sums)) / k


def threshold(distances: np.ndarray, gamma: float) -> np.ndarray:
    """Related where the distance is below gamma, and every client to itself: uint8 [M, M].

    As in FLT's text and code; the printed Sign(A - gamma) has the opposite sign, and values -1, 1.
    """
    related = (distances < gamma).astype(np.uint8)
    np.fill_diagonal(related, 1)
    return related


def components(related: np.ndarray) -> np.ndarray:
    """Connected components of the graph of clients, numbered by first appearance: int64 [M]."""
    return by_first_appearance(connected_components(csr_array(related), directed=False)[1])


def cut(tree: np.ndarray, clusters: int) -> np.ndarray:
    """Exactly this many clusters from a dendrogram [M - 1, 4]: int64 [M].

    `fcluster` with `maxclust` returns fewer clusters where heights of merges are tied, as those of
    a relatedness are, down to a single one.
    """
    return by_first_appearance(cut_tree(tree, n_clusters=clusters)[:, 0])


def ward(related: np.ndarray, groups: int, order: Order = "client") -> np.ndarray:
    """Clusters of the rows of the relatedness [M, M] by Ward's method: int64 [M].

    Args:
        order: "client" is correct. "leaf" is a bug of the authors' code (`cluster.py`, line 531):
            cluster numbers in the order of clients are read in the order of the dendrogram's
            leaves, which mixes the clusters unless clients are sorted.
    Raises: InputError if there are fewer clients than clusters.
    """
    if not 1 <= groups <= len(related):
        raise InputError(
            f"{groups} clusters of {len(related)} clients; allowed are 1 to the number of clients"
        )
    if len(related) == 1:
        return np.zeros(1, dtype=np.int64)
    tree = linkage(related.astype(np.float64), method="ward")
    labels = cut(tree, groups)
    if order == "leaf":
        labels[leaves_list(tree)] = labels.copy()
    return by_first_appearance(labels)


def same_group(groups: np.ndarray) -> np.ndarray:
    """Relatedness of disjoint clusters: uint8 [M, M]."""
    return (groups[:, None] == groups[None, :]).astype(np.uint8)


def place(newcomers: np.ndarray, known: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """For each newcomer a client of the cluster with the nearest mean signature: int64 [n].

    FLT section III-B4, which leaves it to future work. Centres have no order, so the signatures
    [M, k, e] of a cluster are averaged over all centres.
    """
    hosts = np.unique(groups, return_index=True)[1]
    means = np.stack([known[groups == group].mean((0, 1)) for group in range(len(hosts))])
    apart = np.linalg.norm(newcomers.mean(1)[:, None] - means[None], axis=2)
    return hosts[apart.argmin(1)]
