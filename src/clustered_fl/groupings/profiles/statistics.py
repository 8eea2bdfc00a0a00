"""What is kept of a client's codes: statistics of their dimensions (REPA eq. 5, "S")."""

from collections.abc import Callable
from typing import Literal

import numpy as np

Statistic = Literal[
    *("mean", "std", "q25", "q50", "q75", "skewness", "kurtosis"),
    *("covariance", "correlation", "pc1", "pc2", "pc3"),
]


def described(codes: np.ndarray, statistics: tuple[Statistic, ...]) -> np.ndarray:
    """Statistics of codes [n, e], one after another: float64 [d].

    Most have e numbers, one of each dimension. "covariance" and "correlation" have those of every
    two dimensions, e (e + 1) / 2 and e (e - 1) / 2 of them, and "pc1" to "pc3" are the directions
    in which the codes vary most, of length 1.

    Moments are those of the sample itself (divided by n), so that a single image has them too; the
    authors' follow-up code divides by n - 1. Quantiles interpolate linearly, as there. A dimension
    without spread has skewness, kurtosis (beyond that of a normal distribution) and correlations 0,
    and a component along which nothing varies is 0.
    """
    codes = codes.astype(np.float64)
    return np.concatenate([_statistic(codes, name) for name in statistics])


def _statistic(codes: np.ndarray, name: Statistic) -> np.ndarray:
    """One statistic of codes [n, e]."""
    if name.startswith("q"):
        return np.quantile(codes, int(name[1:]) / 100, axis=0)
    if name.startswith("pc"):
        return _component(codes, int(name[2:]) - 1)
    return _NAMED[name](codes)


def _standard(codes: np.ndarray) -> np.ndarray:
    """Codes with mean 0 and deviation 1 in every dimension, 0 where there is no spread."""
    centred, spread = codes - codes.mean(0), codes.std(0)
    return np.divide(centred, spread, out=np.zeros_like(centred), where=spread > 0)


def _products(centred: np.ndarray, diagonal: bool) -> np.ndarray:
    """Mean products of every two dimensions, with or without those of one with itself."""
    upper = np.triu_indices(centred.shape[1], 0 if diagonal else 1)
    return (centred.T @ centred / len(centred))[upper]


def _component(codes: np.ndarray, number: int) -> np.ndarray:
    """Principal component `number` of codes [n, e]; its largest entry in size is positive."""
    _, strengths, directions = np.linalg.svd(codes - codes.mean(0), full_matrices=False)
    if number >= len(strengths) or strengths[number] <= 1e-9 * max(1.0, strengths[0]):
        return np.zeros(codes.shape[1])
    found = directions[number]
    return found * np.sign(found[np.abs(found).argmax()])


_NAMED: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "mean": lambda codes: codes.mean(0),
    "std": lambda codes: codes.std(0),
    "skewness": lambda codes: (_standard(codes) ** 3).mean(0),
    "kurtosis": lambda codes: np.where(codes.std(0) > 0, (_standard(codes) ** 4).mean(0) - 3, 0.0),
    "covariance": lambda codes: _products(codes - codes.mean(0), diagonal=True),
    "correlation": lambda codes: _products(_standard(codes), diagonal=False),
}


def normalised(vectors: np.ndarray) -> np.ndarray:
    """Vectors [n, d] divided by their lengths; one of length 0 stays."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
