"""How FLT averages models: as printed, as its public code does, and as either must be meant.

Weights are matrices [clients, clients]: row i holds the shares of all clients' models in the new
model of client i (the transpose of what multiplies the models from the right in Algorithm 3).
"""

import numpy as np
import pandas as pd

# Distances of clients of one cluster and of different ones; the threshold lies between them.
NEAR, FAR, GAMMA = 0.5, 3.0, 1.0


def plain_average(relatedness: np.ndarray, samples: np.ndarray) -> np.ndarray:
    """Weights of the average over relatives, by their samples; every row sums to 1.

    What Algorithm 3, line 17, must mean, and what its authors' code computes for one client.

    Args:
        relatedness: 0/1, symmetric [clients, clients].
        samples: n of each client [clients].
    """
    weighted = relatedness * samples
    return weighted / weighted.sum(axis=1, keepdims=True)


def in_place_average(relatedness: np.ndarray, samples: np.ndarray) -> np.ndarray:
    """Weights if each client's average replaces its model before the next one is computed.

    The authors' public code writes into the list that it reads from (src/comm/fedavg.py), so that
    later clients average averages: a Gauss-Seidel sweep.
    """
    rule = plain_average(relatedness, samples)
    weights = np.eye(len(samples))
    for client in range(len(samples)):
        weights[client] = rule[client] @ weights
    return weights


def printed_case_1(relatedness: np.ndarray, samples: np.ndarray) -> np.ndarray:
    """Weights of Algorithm 3, line 17, as printed: `diag(p_m / |A_m|_0)`, with p_m = n_m / N.

    p_m is that of the client who receives, so that senders are not weighted at all, and the row of
    client m sums to p_m instead of 1.
    """
    shares = samples / samples.sum()
    related = np.count_nonzero(relatedness, axis=1)
    return relatedness * (shares / related)[:, None]


def printed_case_2(groups: np.ndarray, samples: np.ndarray) -> np.ndarray:
    """Weights of Algorithm 3, line 19, as printed: `1 / |C| sum p_m w_m` over a cluster.

    Args:
        groups: cluster of each client [clients].
    """
    same = blocks(groups)
    shares = samples / samples.sum()
    return same * shares / same.sum(axis=1, keepdims=True)


def blocks(groups: np.ndarray) -> np.ndarray:
    """Relatedness of disjoint clusters: 1 within, 0 across."""
    return (groups[:, None] == groups[None, :]).astype(float)


THRESHOLDS = {
    "Sign(A − γ), as printed": lambda distance: np.sign(distance - GAMMA),
    "Sign(γ − A)": lambda distance: np.sign(GAMMA - distance),
    "1 if A < γ, the code": lambda distance: (distance < GAMMA).astype(float),
}
"""Distances to relatedness (section III-B2, Algorithm 2 line 17)."""


def in_place(clusters: int, clients_per_cluster: int) -> pd.DataFrame:
    """What the first client of each cluster gets from one averaging, in place or not.

    Everybody is related to everybody, as in FedAvg, or to its own cluster, as in FLT; all clients
    have equally many samples and come cluster after cluster, as in the authors' scenarios.

    Returns: matrix ("all ones", "blocks"), rule ("plain", "in place"), receiver (cluster whose
        first client it is), cluster (whose models), weight.
    """
    groups = np.repeat(np.arange(clusters), clients_per_cluster)
    samples, own = np.ones(len(groups)), np.eye(clusters)[groups]
    rows = []
    for matrix, related in {
        "all ones": np.ones_like(blocks(groups)),
        "blocks": blocks(groups),
    }.items():
        for rule, average in {"plain": plain_average, "in place": in_place_average}.items():
            weights = average(related, samples)[::clients_per_cluster] @ own
            rows += [
                {"matrix": matrix, "rule": rule, "receiver": i, "cluster": j, "weight": weight}
                for (i, j), weight in np.ndenumerate(weights)
            ]
    return pd.DataFrame(rows)


def weight_sums(clusters: int, clients_per_cluster: int) -> pd.DataFrame:
    """What the weights in a client's new model sum to, by the printed and the meant formulas.

    Anything but 1 scales the whole model, in every round again.

    Returns: formula, samples ("equal"; "unequal": client i of the federation has i), client,
        weight_sum.
    """
    groups = np.repeat(np.arange(clusters), clients_per_cluster)
    clients = len(groups)
    sizes = {"equal": np.ones(clients), "unequal": np.arange(1.0, clients + 1)}
    parts = []
    for name, samples in sizes.items():
        weights = {
            "case I, printed": printed_case_1(blocks(groups), samples),
            "case II, printed": printed_case_2(groups, samples),
            "normalised": plain_average(blocks(groups), samples),
        }
        for formula, matrix in weights.items():
            part = {"formula": formula, "samples": name, "client": np.arange(clients)}
            parts.append(pd.DataFrame(part | {"weight_sum": matrix.sum(axis=1)}))
    return pd.concat(parts, ignore_index=True)


def thresholds(clusters: int, clients_per_cluster: int) -> pd.DataFrame:
    """Which models enter a client's average by the printed and by the coded threshold.

    Averages as in Case I with equal samples, over the number of non-zero entries.

    Returns: rule, near, far (relatedness of clients of one cluster and of two), own, others (summed
        weights of the client's own cluster and of all others).
    """
    groups = np.repeat(np.arange(clusters), clients_per_cluster)
    same = blocks(groups) == 1
    rows = []
    for name, rule in THRESHOLDS.items():
        related = rule(np.where(same, NEAR, FAR))
        weights = related / np.count_nonzero(related, axis=1)[:, None]
        own = float((weights * same).sum(axis=1)[0])
        total = float(weights.sum(axis=1)[0])
        near, far = float(related[0, 0]), float(related[0, -1])
        rows.append((name, near, far, own, total - own))
    return pd.DataFrame(rows, columns=["rule", "near", "far", "own", "others"])
