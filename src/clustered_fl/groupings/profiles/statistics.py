"""What is kept of a client's codes: statistics of each of their dimensions (REPA eq. 5, "S")."""

from typing import Literal

import numpy as np

Statistic = Literal["mean", "std", "q25", "q50", "q75", "skewness", "kurtosis"]


def described(codes: np.ndarray, statistics: tuple[Statistic, ...]) -> np.ndarray:
    """Statistics of every dimension of codes [n, e], one after another: float64 [s * e].

    Moments are those of the sample itself (divided by n), so that a single image has them too; the
    authors' follow-up code divides by n - 1. Quantiles interpolate linearly, as there. A dimension
    without spread has skewness and kurtosis (beyond that of a normal distribution) 0.
    """
    codes = codes.astype(np.float64)
    return np.concatenate([_statistic(codes, name) for name in statistics])


def _statistic(codes: np.ndarray, name: Statistic) -> np.ndarray:
    """One statistic of codes [n, e]: [e]."""
    if name == "mean":
        return codes.mean(0)
    if name == "std":
        return codes.std(0)
    if name.startswith("q"):
        return np.quantile(codes, int(name[1:]) / 100, axis=0)
    centred, spread = codes - codes.mean(0), codes.std(0)
    standard = np.divide(centred, spread, out=np.zeros_like(centred), where=spread > 0)
    if name == "skewness":
        return (standard**3).mean(0)
    return np.where(spread > 0, (standard**4).mean(0) - 3, 0.0)


def normalised(vectors: np.ndarray) -> np.ndarray:
    """Vectors [n, d] divided by their lengths; one of length 0 stays."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
