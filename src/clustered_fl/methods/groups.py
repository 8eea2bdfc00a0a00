"""The linear algebra of groupings: cosine similarity, optimal bipartition, separation gap.

Source: Sattler, Müller, Samek, "Clustered Federated Learning" (TNNLS 2020), sections II-A, II-B.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
import torch
from scipy.cluster.hierarchy import cut_tree, linkage
from scipy.spatial.distance import squareform
from torch import Tensor

from clustered_fl.engine.inner_products import gram

Linkage = Literal["single", "complete"]


class Bipartition(NamedTuple):
    """Two halves of a set of clients and the largest similarity across them.

    `first` and `second` are ascending positions in the similarity matrix, `cross_max` is CFL's
    `alpha_cross^max` (eq. 24).
    """

    first: np.ndarray
    second: np.ndarray
    cross_max: float


def cosine_similarity(
    updates: Tensor | np.ndarray, rows: Sequence[int] | None = None
) -> np.ndarray:
    """Pairwise cosine of `rows` (or all) of `updates` [n, parameters]: float64 [clients, clients].

    A zero row (a client without a step) has no direction; its similarity to all others is 0.
    Source: CFL eqs. (46), (47).
    """
    vectors = torch.as_tensor(updates)
    products = gram(vectors if rows is None else [vectors[row] for row in rows])
    norms = np.sqrt(np.diag(products))
    lengths = np.outer(norms, norms)
    cosines = np.divide(products, lengths, out=np.zeros_like(products), where=lengths > 0)
    return np.clip(cosines, -1.0, 1.0)


def bipartition(similarity: np.ndarray, criterion: Linkage = "single") -> Bipartition:
    """Split clients into two sets, minimising the largest similarity across the split.

    CFL's Algorithm 1 merges the most similar pairs until two sets are left, which is single-linkage
    clustering with distance 1 - similarity. `criterion="complete"` is what the authors' public
    code uses instead (`variant: code`). The half with client 0 comes first. `similarity` is
    symmetric [clients, clients], of two clients or more. Source: CFL Algorithm 1, eqs. (23), (33).
    """
    clients = len(similarity)
    if clients < 2:
        raise ValueError("a bipartition needs at least two clients")
    distance = squareform(1.0 - similarity, checks=False)
    # cut_tree undoes exactly the last merge, also when merge heights are tied; fcluster would not.
    labels = cut_tree(linkage(distance, method=criterion), n_clusters=2)[:, 0]
    same = labels == labels[0]
    first, second = np.flatnonzero(same), np.flatnonzero(~same)
    return Bipartition(first, second, float(similarity[np.ix_(first, second)].max()))


def intra_min(similarity: np.ndarray, groups: np.ndarray) -> float:
    """Smallest similarity within a true group (`alpha_intra^min`, CFL eq. 25), or NaN."""
    same = groups[:, None] == groups[None, :]
    np.fill_diagonal(same, False)
    return float(similarity[same].min()) if same.any() else float("nan")


def is_correct(split: Bipartition, groups: np.ndarray) -> bool:
    """Whether no true group has clients in both halves (CFL Definition 1)."""
    return not set(groups[split.first]) & set(groups[split.second])


def scores(similarity: np.ndarray, groups: np.ndarray) -> dict[str, float]:
    """Scores of the best bipartition by the true groups [clients].

    A positive gap means that the bipartition is correct (Corollary 1); for a single true group it
    is never positive, because the cut is itself a similarity within the group.

    Returns: gap (CFL Definition 2, eq. 44), cut (eq. 24), intra (eq. 25), correct (Definition 1; 0
    or 1).
    """
    split, intra = bipartition(similarity), intra_min(similarity, groups)
    correct, cut = float(is_correct(split, groups)), split.cross_max
    return {"gap": intra - cut, "cut": cut, "intra": intra, "correct": correct}
