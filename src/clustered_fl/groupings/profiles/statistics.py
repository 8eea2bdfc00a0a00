"""Statistics of a client's codes (REPA eq. 5, "S")."""

from collections.abc import Callable
from typing import Literal

import numpy as np

Statistic = Literal[
    *("mean", "std", "q25", "q50", "q75", "skewness", "kurtosis"),
    *("covariance", "correlation", "pc1", "pc2", "pc3"),
]


def described(codes: np.ndarray, statistics: tuple[Statistic, ...]) -> np.ndarray:
    """Statistics of codes [n, e], one after another: float64 [d].

    Most have e numbers, one per dimension. "covariance" and "correlation" are of pairs of
    dimensions, e (e + 1) / 2 and e (e - 1) / 2 numbers, and "pc1" to "pc3" are the first principal
    directions, of length 1.

    Moments divide by n, so that a single image has them, too; the authors' follow-up code divides
    by n - 1. Quantiles are interpolated linearly, as there. A constant dimension has skewness,
    excess kurtosis and correlations 0, and a component without variance is 0.
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
    """Mean products of pairs of dimensions, with or without squares."""
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
    """Vectors [n, d] divided by their lengths; zero vectors stay zero."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
