"""Correlation of clients' vectors with the similarity of their data (REPA, on Fig. 1)."""

from pathlib import Path

import numpy as np
import pandas as pd
from scipy.spatial.distance import pdist, squareform

from clustered_fl.metrics.repa.profiles import pairwise
from clustered_fl.randomness import generator


def label_similarity(counts: np.ndarray) -> np.ndarray:
    """Cosines between clients' label counts d_i [M, classes], REPA's "label skew": [M, M]."""
    return 1 - squareform(pdist(counts.astype(np.float64), "cosine"))


def correlation(
    similarity: np.ndarray, cosine: np.ndarray, times: np.ndarray | None = None
) -> float:
    """Pearson's r over all pairs of clients of two symmetric [M, M]; NaN if one does not vary.

    Args:
        times: multiplicity of each client [M], by default 1.
    """
    upper = np.triu_indices(len(similarity), 1)
    times = np.ones(len(similarity)) if times is None else times
    weight, pairs = np.outer(times, times)[upper], (similarity[upper], cosine[upper])
    x, y = (values - np.average(values, weights=weight) for values in pairs)
    spread = np.sqrt((weight * x**2).sum() * (weight * y**2).sum())
    return float((weight * x * y).sum() / spread) if spread > 0 else float("nan")


def correlation_error(
    similarity: np.ndarray, cosine: np.ndarray, draws: int = 200, seed: int = 0
) -> float:
    """Standard error of `correlation` by a bootstrap over clients.

    The authors' follow-up code resamples pairs, which are not independent, and divides the spread
    by the root of the number of draws, so its result depends on that number. Two draws of the same
    client are not a pair. NaN if the correlation is NaN.
    """
    clients, rng = len(similarity), generator(seed, "bootstrap of clients")
    found = []
    for _ in range(draws):
        times = np.bincount(rng.integers(clients, size=clients), minlength=clients)
        found.append(correlation(similarity, cosine, times.astype(np.float64)))
    known = np.array(found)[np.isfinite(found)]
    return float(known.std(ddof=1)) if len(known) > 1 else float("nan")


def over_rounds(folder: Path, similarity: np.ndarray) -> pd.DataFrame:
    """Correlation with S [M, M] after every measured round (Fig. 1): round, correlation, error."""
    rows = [
        (now, correlation(similarity, cosine), correlation_error(similarity, cosine))
        for now, cosine in sorted(pairwise(folder, "cosine").items())
    ]
    return pd.DataFrame(rows, columns=["round", "correlation", "error"])
