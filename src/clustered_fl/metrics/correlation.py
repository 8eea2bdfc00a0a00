"""How well clients' vectors tell whose data are alike (REPA, section on Fig. 1)."""

from pathlib import Path

import numpy as np
import pandas as pd
from scipy.spatial.distance import pdist, squareform

from clustered_fl.metrics.profiles import pairwise
from clustered_fl.randomness import generator


def label_similarity(counts: np.ndarray) -> np.ndarray:
    """Cosine of the label counts d_i [M, classes] of every two clients: float64 [M, M].

    "Label skew" in REPA's list of similarities.
    """
    return 1 - squareform(pdist(counts.astype(np.float64), "cosine"))


def correlation(similarity: np.ndarray, cosine: np.ndarray) -> float:
    """Pearson's r over all pairs of clients of two symmetric [M, M]; NaN if one does not vary."""
    return _pearson(similarity, cosine, np.ones(len(similarity)))


def correlation_error(
    similarity: np.ndarray, cosine: np.ndarray, draws: int = 200, seed: int = 0
) -> float:
    """Standard error of `correlation` by drawing clients, with replacement, M of M.

    The authors' follow-up code draws pairs, which are not independent, and divides the spread of
    the draws by the root of their number besides; that says how often one has drawn. Two draws of
    one client are no pair.
    """
    clients, rng = len(similarity), generator(seed, "bootstrap of clients")
    found = []
    for _ in range(draws):
        times = np.bincount(rng.integers(clients, size=clients), minlength=clients)
        found.append(_pearson(similarity, cosine, times.astype(np.float64)))
    return float(np.nanstd(found, ddof=1))


def over_rounds(folder: Path, similarity: np.ndarray) -> pd.DataFrame:
    """Correlation after every round that a grouping has measured (Fig. 1).

    Args:
        folder: of the grouping, by whose vectors clients are compared.
        similarity: S of its training clients [M, M].
    Returns:
        Columns round, correlation, error (over clients, see `correlation_error`).
    """
    rows = [
        {
            "round": now,
            "correlation": correlation(similarity, cosine),
            "error": correlation_error(similarity, cosine),
        }
        for now, cosine in sorted(pairwise(folder, "cosine").items())
    ]
    return pd.DataFrame(rows)


def _pearson(first: np.ndarray, second: np.ndarray, times: np.ndarray) -> float:
    """Pearson's r over pairs, of clients that are there so many times [M]."""
    upper = np.triu_indices(len(first), 1)
    weight = np.outer(times, times)[upper]
    x, y = (values[upper] - np.average(values[upper], weights=weight) for values in (first, second))
    spread = np.sqrt((weight * x**2).sum() * (weight * y**2).sum())
    return float((weight * x * y).sum() / spread) if spread > 0 else float("nan")
