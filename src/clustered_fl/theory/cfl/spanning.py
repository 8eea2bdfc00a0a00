"""The optimal bipartition of many similarity matrices at once: CFL's Fig. 3 needs a million."""

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

    This is CFL's Algorithm 1, eqs. (23), (33), in O(clients^2) instead of O(clients^3). Prim's
    algorithm grows the tree from client 0 along the strongest edge. When it adds the weakest edge
    of the tree for the last time, no stronger edge leaves the tree, and all later clients join
    through the new ones. So the clients before that edge are one half, and the others the other
    half.
    """
    trials, clients, _ = similarity.shape
    rows = np.arange(trials)
    edges = np.empty((trials, clients - 1))
    joined = np.zeros((trials, clients), dtype=np.int64)
    outside = np.tile(np.arange(clients) > 0, (trials, 1))
    strongest = similarity[:, 0].copy()
    for step in range(1, clients):
        strongest[~outside] = -np.inf
        newcomer = strongest.argmax(axis=1)
        edges[:, step - 1] = strongest[rows, newcomer]
        joined[rows, newcomer] = step
        outside[rows, newcomer] = False
        np.maximum(strongest, similarity[rows, newcomer], out=strongest)
    last_weakest = clients - 1 - edges[:, ::-1].argmin(axis=1)
    return Cuts(edges.min(axis=1), joined < last_weakest[:, None])


def undivided(first: np.ndarray, groups: int) -> np.ndarray:
    """Which bipartitions are correct: no true group has clients in both halves (CFL Definition 1).

    Clients of a group are side by side in `first` [trials, clients], all groups of equal size.
    """
    by_group = first.reshape(len(first), groups, -1)
    return (by_group.all(axis=2) | ~by_group.any(axis=2)).all(axis=1)


def weakest_within(similarity: np.ndarray, groups: int) -> np.ndarray:
    """Smallest similarity within a group per trial (`alpha_intra^min`, eq. 25); input by group."""
    group = np.repeat(np.arange(groups), similarity.shape[1] // groups)
    i, j = np.nonzero(np.triu(group[:, None] == group[None, :], k=1))
    return similarity[:, i, j].min(axis=1)
