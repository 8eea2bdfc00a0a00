"""Placement of newcomers: whether they get their true cluster, and their accuracy there.

Source: Jamali-Rad, Abdizadeh, Singh (TNNLS 2023), section III-B4, optional part of Algorithm 3.
"""

import numpy as np
import pandas as pd

from clustered_fl.metrics.accuracy import at_last, client_scores
from clustered_fl.records import index
from clustered_fl.records.reading import load_record

COLUMNS = ("run", "seed", "client", "kind", "cluster", "right", "accuracy", "members")


def placements(runs: pd.DataFrame) -> pd.DataFrame:
    """One row per newcomer of the runs in an index of records.

    Columns: run, seed, client, kind ("new", or "changed": another client before its data changed),
    cluster (its true one), right (whether all clients whose model it shares are of that cluster),
    accuracy (%, with that model), members (%, mean over the first clients of its true cluster).
    """
    rows = []
    for run, seed, folder in index.each(runs):
        record = load_record(folder)
        members = at_last(client_scores(folder)).groupby(np.array(record["true_groups"])).mean()
        truth = dict(enumerate(record["true_groups"]))
        truth |= {each["client"]: each["true_group"] for each in record["newcomers"]}
        federation = record["config"]["federation"]
        new = federation["newcomers"] * federation["groups"]  # before those whose data changed
        for place, each in enumerate(record["newcomers"]):
            kind, cluster = "new" if place < new else "changed", each["true_group"]
            right = {truth[client] for client in each["clients"]} == {cluster}
            scores = 100 * each["accuracy"], members[cluster]
            rows.append((run, seed, each["client"], kind, cluster, right, *scores))
    return pd.DataFrame(rows, columns=list(COLUMNS))
