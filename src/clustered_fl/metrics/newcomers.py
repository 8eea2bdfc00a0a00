"""Clients that join later: are they led to their cluster, and how well are they served there?

Source: Jamali-Rad, Abdizadeh, Singh (TNNLS 2022), section III-B4 and the optional part of Algorithm
3, future work there.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from clustered_fl.metrics.accuracy import at_last, client_scores
from clustered_fl.metrics.curves import Folders
from clustered_fl.records import load_record

COLUMNS = ("run", "seed", "client", "kind", "cluster", "right", "accuracy", "members")


def placements(folders: Folders) -> pd.DataFrame:
    """One row per newcomer of these runs.

    Returns:
        Columns run, seed, client, kind ("new", or "changed": it was another client before its data
        changed), cluster (its true one), right (whether all clients whose model it shares are of
        that cluster), accuracy (%, with that model), members (%, mean over the clients of its true
        cluster that were there from the start).
    """
    parts = [
        _of_run(Path(folder)).assign(run=run, seed=int(seed))
        for run, seeds in folders.items()
        for seed, folder in seeds.items()
    ]
    return pd.concat(parts, ignore_index=True)[list(COLUMNS)]


def _of_run(folder: Path) -> pd.DataFrame:
    record = load_record(folder)
    members = at_last(client_scores(folder)).groupby(np.array(record["true_groups"])).mean()
    truth = dict(enumerate(record["true_groups"]))
    truth |= {new["client"]: new["true_group"] for new in record["newcomers"]}
    new = _new(record)
    rows = [
        {
            "client": each["client"],
            "kind": "new" if place < new else "changed",
            "cluster": each["true_group"],
            "right": {truth[client] for client in each["clients"]} == {each["true_group"]},
            "accuracy": 100 * each["accuracy"],
            "members": members[each["true_group"]],
        }
        for place, each in enumerate(record["newcomers"])
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS[2:]))


def _new(record: Mapping[str, Any]) -> int:
    """How many newcomers are new; those whose data changed come after them."""
    federation = record["config"]["federation"]
    return federation["newcomers"] * federation["groups"]
