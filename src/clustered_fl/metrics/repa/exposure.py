"""Whether a model was just trained on the labels it is tested on (REPA, explanation of Fig. 5).

"the model is evaluated on clients containing data belonging to classes that might not have been
present in the training set of the previous epoch. Therefore, [...] the model 'overfits'".
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd


def exposures(rounds: pd.DataFrame, groups: Sequence[int], counts: np.ndarray) -> pd.DataFrame:
    """All tests of all clients, with the labels that their clusters trained in the round before.

    Columns: round, client, accuracy (%), share (of the client's images, those whose label a
    participant of its cluster held in the round before; NaN if the cluster had none).

    Args:
        groups: cluster of each training client [M], which must not change during the run.
        counts: training images per label, at least of these clients [M, classes].
    """
    clients = rounds[rounds["scope"] == "client"]
    tests = clients[(clients["metric"] == "accuracy") & (clients["round"] > 0)]
    trained = clients[clients["metric"] == "loss"].groupby("round")["member"].agg(list)
    parts = []
    for now, own in tests.groupby("round"):
        shares = _shares(trained.get(now - 1, []), np.array(groups), counts)
        values = {"accuracy": 100 * own["value"], "share": shares[own["member"]]}
        parts.append(own[["round", "member"]].assign(**values))
    columns = ["round", "member", "accuracy", "share"]
    found = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)
    return found.rename(columns={"member": "client"})


def _shares(participants: Sequence[int], groups: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Fraction of each client's images [M] whose label its cluster has just trained."""
    counts, there = counts[: len(groups)], np.array(participants, dtype=int)
    found = np.full(len(groups), np.nan)
    for group in np.unique(groups[there]):
        trained = counts[there[groups[there] == group]].any(0)
        members = groups == group
        found[members] = counts[members] @ trained / counts[members].sum(1)
    return found


def incomplete(table: pd.DataFrame, groups: Sequence[int], counts: np.ndarray) -> float:
    """Fraction of rounds in which a cluster did not train all labels of its clients.

    Over all rounds and all clusters with more than two labels, from `exposures` with the same
    arguments; NaN if there is no such cluster.
    """
    groups = np.array(groups)
    labels = {group: counts[: len(groups)][groups == group].any(0).sum() for group in groups}
    known = table.assign(group=groups[table["client"]], missed=table["share"].ne(1))
    known = known[known["group"].map(labels) > 2]
    return float(known.groupby(["round", "group"])["missed"].any().mean())


def loss(table: pd.DataFrame) -> dict[str, float]:
    """Loss of a client if one of its labels was not trained in the round before.

    Computed from `exposures`. Every client is compared with itself, because clients of uniform
    clusters always see all their labels and may be easier. seen, unseen: accuracy in % after rounds
    with all labels and with fewer, means over the clients that had both (NaN without any); error:
    standard error of their mean loss; clients: their number.
    """
    known = table.dropna(subset="share")
    known = known.assign(after=known["share"].eq(1).map({True: "seen", False: "unseen"}))
    means = known.pivot_table(index="client", columns="after", values="accuracy")
    means = means.reindex(columns=["seen", "unseen"]).dropna()
    error = float((means["seen"] - means["unseen"]).sem())
    return {**means.mean().to_dict(), "error": error, "clients": len(means)}
