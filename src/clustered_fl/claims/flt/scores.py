"""Accuracy and its variance over clients of the runs that a claim names, and what is published.

Runs are named by column and method: "s1_mnist" and "fedavg" for `flt_s1_mnist_fedavg`.
"""

from collections.abc import Callable

import numpy as np
import pandas as pd

from clustered_fl.claims.evidence import Evidence
from clustered_fl.claims.predicates import Measured
from clustered_fl.metrics import accuracy

NAMES = {
    "fedavg": "FedAvg",
    "local": "Local",
    "pca": "PCA+kM+HC",
    "ifca": "IFCA",
    "cfl": "CFL",
    "fedsem": "FedSEM",
    "enc1": "FLT (Enc1)",
    "enc2": "FLT (Enc2)",
    "flt": "FLT",
    "c2": "FLT (C = 2)",
    "c3": "FLT (C = 3)",
    "c5": "FLT (C = 5)",
}

# Column of Tables I to IV -> method -> accuracy in % and variance over clients.
PUBLISHED: dict[str, dict[str, tuple[float, float]]] = {
    "s1_mnist": {
        "fedavg": (82.73, 44.65),
        "local": (97.41, 3.44),
        "pca": (83.82, 41.13),
        "fedsem": (98.01, 2.12),
        "enc1": (97.98, 2.17),
        "enc2": (97.97, 2.17),
    },
    "s1_cifar": {
        "fedavg": (33.29, 108.20),
        "local": (79.81, 115.35),
        "pca": (75.35, 589.6),
        "fedsem": (78.23, 695.01),
        "enc1": (87.11, 88.80),
        "enc2": (87.17, 84.62),
    },
    "s2_mnist": {
        "fedavg": (86.08, 17.55),
        "local": (96.58, 1.81),
        "pca": (85.45, 18.42),
        "fedsem": (94.14, 1.20),
        "enc1": (97.37, 1.07),
        "enc2": (97.37, 1.07),
    },
    "s2_cifar": {
        "fedavg": (52.77, 19.18),
        "local": (70.44, 72.29),
        "pca": (61.75, 312.22),
        "fedsem": (73.26, 339.39),
        "enc1": (79.971, 146.84),
        "enc2": (80.00, 78.66),
    },
    "s3_mlp": {
        "fedavg": (72.76, 202.61),
        "pca": (71.94, 194.75),
        "ifca": (61.24, 176.38),
        "cfl": (65.35, 180.23),
        "fedsem": (72.45, 185.96),
        "flt": (74.11, 171.31),
        "c2": (72.83, 175.55),
        "c3": (72.61, 184.59),
        "c5": (72.05, 180.32),
    },
    "s3_cnn": {
        "fedavg": (81.64, 147.03),
        "pca": (80.07, 160.32),
        "ifca": (81.47, 118.71),
        "cfl": (76.68, 132.42),
        "fedsem": (79.99, 156.27),
        "flt": (82.14, 145.03),
        "c2": (80.53, 150.26),
        "c3": (79.72, 170.10),
        "c5": (78.71, 169.22),
    },
    "s4_mlp": {
        "fedavg": (46.50, 100.27),
        "pca": (48.75, 467.92),
        "fedsem": (43.53, 406.60),
        "flt": (86.51, 207.60),
    },
    "s4_cnn": {
        "fedavg": (53.58, 883.47),
        "pca": (59.87, 912.39),
        "fedsem": (76.22, 1264.38),
        "flt": (93.69, 98.65),
    },
}

# Column -> method -> run that does what the public code did, in place of the printed method.
CODED: dict[str, dict[str, str]] = {
    "s1_mnist": {m: f"code_{m}" for m in ("fedavg", "local", "pca", "fedsem", "enc1")},
    "s1_cifar": {m: f"code_{m}" for m in ("fedavg", "fedsem", "enc1")},
    "s2_mnist": {m: f"code_{m}" for m in ("fedavg", "local", "pca", "fedsem", "enc1")},
    "s2_cifar": {m: f"code_{m}" for m in ("fedavg", "fedsem", "enc1")},
    "s3_mlp": {"fedavg": "fedavg_all", "flt": "flt_all", "c2": "c2_leaf"},
    "s4_mlp": {m: f"code_{m}" for m in ("fedavg", "flt")},
    "s4_cnn": {"flt": "code_flt"},
}


def clients_of(evidence: Evidence, run: str, until: float = np.inf) -> pd.Series:
    """Accuracy in % of every client at the last test not after round `until`.

    Args:
        run: without the leading "flt_".
    """
    scores = accuracy.client_scores(evidence.run(f"flt_{run}").folder)
    return accuracy.at_last(scores, until)


def accuracy_of(evidence: Evidence, run: str, until: float = np.inf) -> float:
    """Mean over clients, in %."""
    return float(clients_of(evidence, run, until).mean())


def variance_of(evidence: Evidence, run: str) -> float:
    """Population variance over clients at the end, in squared points."""
    return float(clients_of(evidence, run).var(ddof=0))


def rounds_of(evidence: Evidence, run: str) -> int:
    """Rounds that a run was trained for."""
    return int(evidence.run(f"flt_{run}").record["rounds"])


def lead(evidence: Evidence, column: str, method: str, other: str) -> float:
    """By how many points `method` is ahead of `other` in one column of a table."""
    first, second = (accuracy_of(evidence, f"{column}_{name}") for name in (method, other))
    return first - second


def leads(column: str, method: str, others: tuple[str, ...]) -> Callable[[Evidence], Measured]:
    """Measure by how many points `method` is ahead of others in one column of a table."""

    def measure(evidence: Evidence) -> Measured:
        return {f"over {NAMES[other]}": lead(evidence, column, method, other) for other in others}

    return measure
