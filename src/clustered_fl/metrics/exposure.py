"""Whether a model has just trained the labels that it is tested on (REPA, explanation of Fig. 5).

"the model is evaluated on clients containing data belonging to classes that might not have been
present in the training set of the previous epoch. Therefore, [...] the model 'overfits'".
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd


def exposures(rounds: pd.DataFrame, groups: Sequence[int], counts: np.ndarray) -> pd.DataFrame:
    """Every test of every client beside what its cluster trained in the round before.

    Args:
        rounds: measurements of a run, as `records.load_rounds` reads them.
        groups: cluster of each training client [M], which must not change during the run.
        counts: training images of each label, of these clients at least [M, classes].
    Returns:
        Columns round, client, accuracy (%) and share (of the client's images, those whose label a
        participant of its cluster held in the round before; NaN if nobody of it took part).
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
    """Share of each client's images [M] whose label its cluster has just trained."""
    counts, found = counts[: len(groups)], np.full(len(groups), np.nan)
    own = groups[list(participants)]
    for group in np.unique(own):
        trained = counts[np.array(participants)[own == group]].any(0)
        members = groups == group
        found[members] = counts[members] @ trained / counts[members].sum(1)
    return found


def loss(table: pd.DataFrame) -> dict[str, float]:
    """What a client loses when a label of its was not trained in the round before.

    Compared is every client with itself, because clients of uniform clusters always see all their
    labels and may be easier.

    Args:
        table: as `exposures` makes it, of the rounds that are asked about.
    Returns:
        seen, unseen: accuracy in % after rounds with all labels and with fewer, means over the
        clients that had both; clients: their number. Means are NaN if there are none.
    """
    known = table.dropna(subset="share")
    whole = known["share"].eq(1).map({True: "seen", False: "unseen"})
    named = known.assign(after=whole)
    means = named.pivot_table(index="client", columns="after", values="accuracy")
    means = means.reindex(columns=["seen", "unseen"]).dropna()
    return {**means.mean().to_dict(), "clients": len(means)}
