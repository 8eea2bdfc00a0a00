"""FLT's averaging of models: as printed, as in the public code, and as presumably intended.

Weights are matrices [clients, clients]: row i holds the shares of all clients' models in the new
model of client i (the transpose of what multiplies the models from the right in Algorithm 3).
"""

from itertools import product

import numpy as np
import pandas as pd

# Distances of clients of one cluster and of different ones; the threshold lies between them.
NEAR, FAR, GAMMA = 0.5, 3.0, 1.0


def plain_average(relatedness: np.ndarray, samples: np.ndarray) -> np.ndarray:
    """Weights of the average over relatives (0/1 `relatedness`), by samples; rows sum to 1.

    What Algorithm 3, line 17, must mean, and what its authors' code computes for one client. There
    may be several matrices [.., clients, clients].
    """
    weighted = relatedness * samples
    return weighted / weighted.sum(axis=-1, keepdims=True)


def in_place_average(relatedness: np.ndarray, samples: np.ndarray) -> np.ndarray:
    """Weights if each client's average replaces its model before the next one is computed.

    The public code writes into the list that it reads (src/comm/fedavg.py): a Gauss-Seidel sweep.
    """
    rule = plain_average(relatedness, samples)
    weights = np.eye(len(samples))
    for client in range(len(samples)):
        weights[client] = rule[client] @ weights
    return weights


def printed_case_1(relatedness: np.ndarray, samples: np.ndarray) -> np.ndarray:
    """Weights of Algorithm 3, line 17, as printed: `diag(p_m / |A_m|_0)`, with p_m = n_m / N.

    p_m is the receiver's: senders are not weighted, and the row of client m sums to p_m, not 1.
    """
    shares = samples / samples.sum()
    return relatedness * (shares / np.count_nonzero(relatedness, axis=1))[:, None]


def printed_case_2(groups: np.ndarray, samples: np.ndarray) -> np.ndarray:
    """Weights of Algorithm 3, line 19, as printed: `1 / |C| sum p_m w_m` over a cluster."""
    same = blocks(groups)
    return same * (samples / samples.sum()) / same.sum(axis=1, keepdims=True)


def blocks(groups: np.ndarray) -> np.ndarray:
    """Relatedness of disjoint clusters [.., clients]: 1 within, 0 across."""
    return (groups[..., :, None] == groups[..., None, :]).astype(float)


# Distances to relatedness (section III-B2, Algorithm 2 line 17).
THRESHOLDS = {
    "Sign(A − γ), as printed": lambda distance: np.sign(distance - GAMMA),
    "Sign(γ − A)": lambda distance: np.sign(GAMMA - distance),
    "1 if A < γ, the code": lambda distance: (distance < GAMMA).astype(float),
}


def in_place(clusters: int, clients_per_cluster: int) -> pd.DataFrame:
    """The new model of each cluster's first client after one averaging, in place or not.

    All clients are related to each other (FedAvg), or only those of one cluster (FLT); all have
    equally many samples and are ordered by cluster, as in the authors' scenarios.
    Returns: matrix, rule, receiver (the client's cluster), cluster (whose models), weight.
    """
    groups = np.repeat(np.arange(clusters), clients_per_cluster)
    samples, own = np.ones(len(groups)), np.eye(clusters)[groups]
    matrices = {"all ones": np.ones_like(blocks(groups)), "blocks": blocks(groups)}
    rules = {"plain": plain_average, "in place": in_place_average}
    rows = []
    for matrix, rule in product(matrices, rules):
        weights = rules[rule](matrices[matrix], samples)[::clients_per_cluster] @ own
        rows += [(matrix, rule, *place, weight) for place, weight in np.ndenumerate(weights)]
    return pd.DataFrame(rows, columns=["matrix", "rule", "receiver", "cluster", "weight"])


def weight_sums(clusters: int, clients_per_cluster: int) -> pd.DataFrame:
    """Sums of the weights in a client's new model; if not 1, they rescale it in every round."""
    groups = np.repeat(np.arange(clusters), clients_per_cluster)
    client = np.arange(len(groups))
    parts = []
    for name, samples in {"equal": np.ones(len(groups)), "unequal": client + 1.0}.items():
        weights = {
            "case I, printed": printed_case_1(blocks(groups), samples),
            "case II, printed": printed_case_2(groups, samples),
            "normalised": plain_average(blocks(groups), samples),
        }
        for formula, matrix in weights.items():
            part = {"formula": formula, "samples": name, "client": client}
            parts.append(pd.DataFrame(part | {"weight_sum": matrix.sum(axis=1)}))
    return pd.concat(parts, ignore_index=True)


def thresholds(clusters: int, clients_per_cluster: int) -> pd.DataFrame:
    """Which models enter an average as in Case I, with equal samples, by each threshold.

    Returns: rule, near, far (relatedness within, across clusters), own, others (summed weights).
    """
    same = blocks(np.repeat(np.arange(clusters), clients_per_cluster)) == 1
    rows = []
    for name, rule in THRESHOLDS.items():
        related = rule(np.where(same, NEAR, FAR))
        weights = related / np.count_nonzero(related, axis=1)[:, None]
        own, total = (weights * same).sum(axis=1)[0], weights.sum(axis=1)[0]
        rows.append((name, related[0, 0], related[0, -1], own, total - own))
    return pd.DataFrame(rows, columns=["rule", "near", "far", "own", "others"])
