"""Effect of an index bug on recursive splitting, as in the CFL authors' public demo notebook.

The notebook splits the similarity matrix *of a cluster* and stores the resulting positions as
client numbers, which is correct in the first split only. Re-implementations have inherited the bug.
"""

from itertools import product

import numpy as np
import pandas as pd
from pydantic import NonNegativeFloat, PositiveInt

from clustered_fl.methods.groups import bipartition, cosine_similarity
from clustered_fl.randomness import generator
from clustered_fl.theory.ranges import TwoOrMore
from clustered_fl.theory.tables import leaves

RULES = ("demo", "correct")
ORDERS = ("shuffled", "sorted")

Clusters = list[np.ndarray]


@leaves("splits", "members")
def index_bug(
    seed: int,
    *,
    trials: PositiveInt = 100,
    groups: TwoOrMore = 4,
    clients_per_group: PositiveInt = 5,
    dimension: PositiveInt = 100,
    noise: NonNegativeFloat = 0.3,
) -> dict[str, pd.DataFrame]:
    """Split synthetic federations recursively, with positions ("demo") and with client numbers.

    Both rules split the first cluster with clients of different groups until there is none. An
    oracle decides when to stop, so only the indices can be wrong. `noise` is the standard
    deviation of the clients' minima around that of their group, which is standard normal.
    Returns:
        splits: order ("shuffled" clients, or "sorted" by group), rule, trial, split (0: before the
            first), clusters, lost (clients in no cluster), duplicated (clients in several),
            recovered (the clusters are the groups).
        members: order, rule, split, cluster, client, group of the first trial.
    """
    splits, members = [], []
    for order, trial in product(ORDERS, range(trials)):
        random = generator(seed, "index_bug", ORDERS.index(order), trial)
        group = np.repeat(np.arange(groups), clients_per_group)
        group = random.permutation(group) if order == "shuffled" else group
        centres = random.standard_normal((groups, dimension))
        minima = centres[group] + noise * random.standard_normal((len(group), dimension))
        for rule in RULES:
            states = recursion(minima, group, rule)
            key = {"order": order, "rule": rule}
            splits += [key | {"trial": trial} | row for row in _counts(states, group)]
            members += [key | row for row in _members(states, group) if trial == 0]
    return {"splits": pd.DataFrame(splits), "members": pd.DataFrame(members)}


def recursion(minima: np.ndarray, group: np.ndarray, rule: str) -> list[Clusters]:
    """The clusters before the first split and after each of the K - 1 splits that K groups need.

    With quadratic risks around `minima` [clients, dimension] a cluster converges to their mean,
    and a client's update points from there to its own minimum. If no cluster is left to split, the
    last state is repeated. Rule "demo" keeps positions within the cluster, "correct" the clients.
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
        held = np.bincount(np.concatenate(clusters), minlength=len(group))
        row = {"split": split, "clusters": len(clusters), "lost": (held == 0).sum()}
        recovered = {frozenset(members) for members in clusters} == truth
        rows.append(row | {"duplicated": (held > 1).sum(), "recovered": recovered})
    return rows


def _members(states: list[Clusters], group: np.ndarray) -> list[dict[str, int]]:
    return [
        {"split": split, "cluster": number, "client": client, "group": group[client]}
        for split, clusters in enumerate(states)
        for number, members in enumerate(clusters)
        for client in members
    ]
