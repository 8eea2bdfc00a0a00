"""What a wrong index does to recursive splitting, as in the CFL authors' public demo notebook.

The notebook splits the similarity matrix *of a cluster* and stores the positions it gets back as if
they were client numbers. In the first split both are the same; from the second on they are not.
Several public re-implementations of CFL have inherited the mistake.
"""

from collections import Counter

import numpy as np
import pandas as pd

from clustered_fl.methods.groups import bipartition, cosine_similarity
from clustered_fl.randomness import generator
from clustered_fl.theory.ranges import require_at_least

RULES = ("demo", "correct")
ORDERS = ("shuffled", "sorted")

Clusters = list[np.ndarray]


def index_bug(
    seed: int,
    *,
    trials: int = 100,
    groups: int = 4,
    clients_per_group: int = 5,
    dimension: int = 100,
    noise: float = 0.3,
) -> dict[str, pd.DataFrame]:
    """Split synthetic federations recursively, with positions ("demo") and with client numbers.

    Both rules split the first cluster that holds clients of different groups, until there is none:
    an oracle decides when to stop, so that only the indices can go wrong. Every cluster's updates
    are those at its own stationary point.

    Args:
        noise: standard deviation of the clients' minima around those of their group, which are
            standard normal.
    Returns:
        splits: order ("shuffled": clients in random order; "sorted": group after group), rule,
            trial, split, clusters, lost (clients in no cluster), duplicated (clients in several),
            recovered (the clusters are the groups). Split 0 is before the first.
        members: order, rule, split, cluster, client, group of the first trial.
    Raises:
        InputError: for settings out of range.
    """
    require_at_least(1, trials=trials, dimension=dimension, clients_per_group=clients_per_group)
    require_at_least(2, groups=groups)
    splits, members = [], []
    for order in ORDERS:
        for trial in range(trials):
            random = generator(seed, "index_bug", ORDERS.index(order), trial)
            group = _groups(random, order, groups, clients_per_group)
            minima = _minima(random, group, dimension, noise)
            for rule in RULES:
                states = recursion(minima, group, rule)
                key = {"order": order, "rule": rule}
                splits += [key | {"trial": trial} | row for row in _counts(states, group)]
                members += [key | row for row in _members(states, group) if trial == 0]
    return {"splits": pd.DataFrame(splits), "members": pd.DataFrame(members)}


def _groups(random: np.random.Generator, order: str, groups: int, clients: int) -> np.ndarray:
    group = np.repeat(np.arange(groups), clients)
    return random.permutation(group) if order == "shuffled" else group


def _minima(
    random: np.random.Generator, group: np.ndarray, dimension: int, noise: float
) -> np.ndarray:
    """Where each client's risk is smallest [clients, dimension]."""
    centres = random.standard_normal((group.max() + 1, dimension))
    return centres[group] + noise * random.standard_normal((len(group), dimension))


def recursion(minima: np.ndarray, group: np.ndarray, rule: str) -> list[Clusters]:
    """The clusters before the first split and after each of the K - 1 splits that K groups need.

    With quadratic risks around `minima` [clients, dimension] a cluster comes to rest at their mean,
    and a client's update points from there to its own minimum. If no cluster is left to split, the
    last state is repeated.

    Args:
        rule: "demo" keeps positions within the cluster, "correct" the clients at these positions.
    """
    clusters = [np.arange(len(group))]
    states = [clusters]
    for _ in range(group.max()):
        mixed = [i for i, members in enumerate(clusters) if len(set(group[members])) > 1]
        if mixed:
            members = clusters[mixed[0]]
            updates = minima[members] - minima[members].mean(axis=0)
            cut = bipartition(cosine_similarity(updates))
            parts = [cut.first, cut.second]
            if rule == "correct":
                parts = [members[part] for part in parts]
            clusters = clusters[: mixed[0]] + parts + clusters[mixed[0] + 1 :]
        states.append(clusters)
    return states


def _counts(states: list[Clusters], group: np.ndarray) -> list[dict[str, int | bool]]:
    truth = {frozenset(np.flatnonzero(group == k)) for k in np.unique(group)}
    rows = []
    for split, clusters in enumerate(states):
        held = Counter(np.concatenate(clusters).tolist())
        rows.append(
            {
                "split": split,
                "clusters": len(clusters),
                "lost": len(group) - len(held),
                "duplicated": sum(times > 1 for times in held.values()),
                "recovered": {frozenset(members) for members in clusters} == truth,
            }
        )
    return rows


def _members(states: list[Clusters], group: np.ndarray) -> list[dict[str, int]]:
    return [
        {"split": split, "cluster": number, "client": int(client), "group": int(group[client])}
        for split, clusters in enumerate(states)
        for number, members in enumerate(clusters)
        for client in members
    ]
