"""How far apart two clients are, given a few points of each (FLT Algorithm 2, line 16)."""

from typing import Literal

import numpy as np
from scipy.cluster.hierarchy import fcluster, leaves_list, linkage
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist

from clustered_fl.errors import InputError

Distance = Literal["minimum", "matching"]
Order = Literal["client", "leaf"]


def client_distances(points: np.ndarray, kind: Distance) -> np.ndarray:
    """Distance of every two clients.

    "minimum" is the printed formula: the smallest distance between a point of one and a point of
    the other. "matching" is the authors' code: the points are paired so that the sum of squared
    distances is smallest, and the distance is the root of that sum divided by k. (Their code tries
    all k! pairings; the assignment problem gives the same.)

    Args:
        points: [M, k, u].
    Returns:
        float32 [M, M], symmetric, 0 on the diagonal.
    """
    clients, k, _ = points.shape
    found = np.zeros((clients, clients), dtype=np.float32)
    flat = points.reshape(clients * k, -1).astype(np.float64)
    for client in range(clients):
        rest = flat[(client + 1) * k :]
        apart = cdist(points[client].astype(np.float64), rest).reshape(k, -1, k).swapaxes(0, 1)
        found[client, client + 1 :] = _between(apart, kind)
    return found + found.T


def _between(apart: np.ndarray, kind: Distance) -> np.ndarray:
    """Distance of one client to others, from those of their points [others, k, k]."""
    if kind == "minimum":
        return apart.min((1, 2))
    squared, k = apart**2, apart.shape[1]
    sums = [costs[linear_sum_assignment(costs)].sum() for costs in squared]
    return np.sqrt(np.array(sums)) / k


def threshold(distances: np.ndarray, gamma: float) -> np.ndarray:
    """Related where the distance is below gamma, and everybody to himself: uint8 [M, M].

    The printed Sign(A - gamma) has the opposite sense and the values -1 and 1; this is what the
    text describes and the code does.
    """
    related = (distances < gamma).astype(np.uint8)
    np.fill_diagonal(related, 1)
    return related


def components(related: np.ndarray) -> np.ndarray:
    """Connected components of the graph of clients, numbered by first appearance: int64 [M]."""
    labels = connected_components(csr_array(related), directed=False)[1]
    return _by_appearance(labels)


def ward(related: np.ndarray, groups: int, order: Order = "client") -> np.ndarray:
    """Disjoint clusters of the rows of the relatedness by Ward's method: int64 [M].

    Args:
        related: [M, M].
        groups: number of clusters.
        order: "client" is right. "leaf" is a mistake of the authors' code (`cluster.py`, line 531):
            cluster numbers in the order of clients are read as if they were in the order of the
            dendrogram's leaves, which mixes the clusters unless the clients came sorted.
    Raises:
        InputError: if there are fewer clients than clusters.
    """
    if not 1 <= groups <= len(related):
        raise InputError(
            f"{groups} clusters of {len(related)} clients; allowed are 1 to the number of clients"
        )
    if len(related) == 1:
        return np.zeros(1, dtype=np.int64)
    tree = linkage(related.astype(np.float64), method="ward")
    labels = fcluster(tree, groups, criterion="maxclust")
    if order == "leaf":
        confused = np.empty_like(labels)
        confused[leaves_list(tree)] = labels
        labels = confused
    return _by_appearance(labels)


def same_group(groups: np.ndarray) -> np.ndarray:
    """Relatedness of disjoint clusters: uint8 [M, M]."""
    return (groups[:, None] == groups[None, :]).astype(np.uint8)


def _by_appearance(labels: np.ndarray) -> np.ndarray:
    _, first, numbers = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first))
    return rank[numbers].astype(np.int64)
