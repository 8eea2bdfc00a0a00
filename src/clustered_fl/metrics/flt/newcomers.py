"""Placement of newcomers: whether they get their true cluster, and their accuracy there.

Source: Jamali-Rad, Abdizadeh, Singh (TNNLS 2023), section III-B4, optional part of Algorithm 3.
"""

import numpy as np
import pandas as pd

from clustered_fl.metrics import agreement
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
        federation = record["config"]["federation"]
        new = federation["newcomers"] * federation["groups"]  # before those whose data changed
        homes = agreement.newcomers_at_home(record)
        for place, (each, right) in enumerate(zip(record["newcomers"], homes, strict=True)):
            kind, cluster = "new" if place < new else "changed", each["true_group"]
            scores = 100 * each["accuracy"], members[cluster]
            rows.append((run, seed, each["client"], kind, cluster, right, *scores))
    return pd.DataFrame(rows, columns=list(COLUMNS))
