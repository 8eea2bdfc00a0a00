"""The optimal bipartition of many similarity matrices at once.

`clustered_fl.methods.groups.bipartition` treats one matrix; the simulations of CFL's Fig. 3 need a
million, so here Prim's algorithm runs on all of them in step.
"""

from typing import NamedTuple

import numpy as np


class Cuts(NamedTuple):
    """One bipartition per trial.

    similarity: [trials], the largest similarity across the cut (`alpha_cross^max`).
    first: [trials, clients], True for the clients in the half of client 0.
    """

    similarity: np.ndarray
    first: np.ndarray


def weakest_links(similarity: np.ndarray) -> Cuts:
    """Cut every matrix [trials, clients, clients] at the weakest edge of its maximum spanning tree.

    That is CFL's Algorithm 1 in O(clients^2) instead of O(clients^3). Prim's algorithm grows the
    tree from client 0 along the strongest edge; when it takes the weakest of all for the last
    time, no stronger edge leads out of the tree, and everything that joins later is tied to the
    newcomers. Who joined before is therefore one half, who joins after it the other.

    Source: CFL Algorithm 1, eqs. (23), (33).
    """
    edges, joined = _grow_trees(similarity)
    clients = similarity.shape[1]
    last_weakest = clients - 1 - edges[:, ::-1].argmin(axis=1)
    return Cuts(edges.min(axis=1), joined < last_weakest[:, None])


def _grow_trees(similarity: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Edge weights in the order taken [trials, clients - 1], and when each client joined."""
    trials, clients, _ = similarity.shape
    rows = np.arange(trials)
    edges = np.empty((trials, clients - 1))
    joined = np.zeros((trials, clients), dtype=np.int64)
    outside = np.ones((trials, clients), dtype=bool)
    outside[:, 0] = False
    strongest = similarity[:, 0].copy()
    for step in range(1, clients):
        strongest[~outside] = -np.inf
        newcomer = strongest.argmax(axis=1)
        edges[:, step - 1] = strongest[rows, newcomer]
        joined[rows, newcomer] = step
        outside[rows, newcomer] = False
        np.maximum(strongest, similarity[rows, newcomer], out=strongest)
    return edges, joined


def undivided(first: np.ndarray, groups: int) -> np.ndarray:
    """Which bipartitions are correct: no true group has clients in both halves.

    Args:
        first: [trials, clients]; clients of a group stand side by side, all groups alike in size.
        groups: number of true groups.
    Returns: bool [trials].
    Source: CFL Definition 1.
    """
    by_group = first.reshape(len(first), groups, -1)
    return (by_group.all(axis=2) | ~by_group.any(axis=2)).all(axis=1)


def weakest_within(similarity: np.ndarray, groups: int) -> np.ndarray:
    """Smallest similarity of two different clients of one group (`alpha_intra^min`), per trial.

    Args:
        similarity: [trials, clients, clients], ordered by group as for `undivided`.
        groups: number of true groups, each of at least two clients.
    Source: CFL eqs. (19), (25).
    """
    clients = similarity.shape[1]
    group = np.repeat(np.arange(groups), clients // groups)
    i, j = np.nonzero(np.triu(group[:, None] == group[None, :], k=1))
    return similarity[:, i, j].min(axis=1)
