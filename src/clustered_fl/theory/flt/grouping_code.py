"""Assignment of clients to hierarchical clusters in FLT's public code, which has a bug.

It picks the leaves of the dendrogram at the *positions* of a cluster's clients
(partition_clusters in src/utils/cluster.py): positions in one order index another.
"""

from collections.abc import Sequence
from itertools import product

import numpy as np
import pandas as pd
from scipy.cluster.hierarchy import cut_tree, leaves_list, linkage
from sklearn.metrics import adjusted_rand_score

from clustered_fl.randomness import generator

ORDERS = ("random", "sorted")
SIZES = ("equal", "unequal")


def ward_clusters(relatedness: np.ndarray, clusters: int) -> tuple[np.ndarray, np.ndarray]:
    """Ward's clusters of the rows, and their order as leaves (FLT Algorithm 2, line 18; IV-A3).

    `fcluster` would return fewer clusters where heights of merges are tied.
    """
    tree = linkage(relatedness, method="ward")
    return cut_tree(tree, n_clusters=clusters)[:, 0], leaves_list(tree)


def groups_by_leaf_order(memberships: np.ndarray, leaves: np.ndarray) -> np.ndarray:
    """The public code's clusters `leaves[memberships == c]`; `memberships` would be right."""
    groups = np.empty_like(memberships)
    groups[leaves] = memberships
    return groups


def leaf_order(seed: int, trials: int, clients: int, clusters: int, flipped: float) -> pd.DataFrame:
    """Cluster random relatedness matrices, and read the clusters as in the code and correctly.

    Returns: order ("random", "sorted": cluster after cluster), sizes ("equal", "unequal": as
        1 : 2 : 3 and so on), trial, wrong (the code's groups are not those that were found), right,
        coded (adjusted Rand index of the found and of the coded groups with the true ones).
    """
    rows = []
    for number, (order, sizes) in enumerate(product(ORDERS, SIZES)):
        shares = np.ones(clusters) if sizes == "equal" else np.arange(1, clusters + 1)
        truth = _divided(clients, shares)
        for trial in range(trials):
            random = generator(seed, "leaf_order", number, trial)
            group = random.permutation(truth) if order == "random" else truth
            found, leaves = ward_clusters(noisy_blocks(random, group, flipped), clusters)
            coded = groups_by_leaf_order(found, leaves)
            wrong = adjusted_rand_score(found, coded) != 1
            indices = [adjusted_rand_score(group, each) for each in (found, coded)]
            rows.append((order, sizes, trial, wrong, *indices))
    return pd.DataFrame(rows, columns=["order", "sizes", "trial", "wrong", "right", "coded"])


def _divided(clients: int, shares: Sequence[float] | np.ndarray) -> np.ndarray:
    """Clusters [clients] in order, with sizes in proportion to `shares`."""
    ends = np.cumsum(shares) / np.sum(shares)
    return np.searchsorted(ends, (np.arange(clients) + 0.5) / clients)


def noisy_blocks(random: np.random.Generator, group: np.ndarray, flipped: float) -> np.ndarray:
    """Relatedness [clients, clients] of the true groups, with some pairs related wrongly."""
    same = group[:, None] == group[None, :]
    upper = np.triu(random.random(same.shape) < flipped, 1)
    return (same ^ upper ^ upper.T).astype(float)
