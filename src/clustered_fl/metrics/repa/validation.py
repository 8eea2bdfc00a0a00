"""Accuracy on the validation images of training and of holdout clients (REPA's VAL and HO).

REPA does not say whether clients are weighted by their images; both versions are given.
"""

import numpy as np
import pandas as pd

from clustered_fl.errors import InputError
from clustered_fl.metrics.repa.profiles import validation_sizes
from clustered_fl.records import index
from clustered_fl.records.reading import load_rounds

SETS = {"client": "VAL", "newcomer": "HO"}


def over_rounds(rounds: pd.DataFrame, sizes: np.ndarray) -> pd.DataFrame:
    """VAL and HO at every test of one run, given each client's number of test images.

    Columns: round, set ("VAL" or "HO"), weighted and unweighted accuracy in %, clients, images.
    """
    scores = rounds[(rounds["metric"] == "accuracy") & rounds["scope"].isin(list(SETS))]
    rows = []
    for (now, scope), own in scores.groupby(["round", "scope"]):
        values, images = 100 * own["value"].to_numpy(), sizes[own["member"].to_numpy()]
        weighted = np.average(values, weights=images)
        rows.append((int(now), SETS[scope], weighted, values.mean(), len(own), int(images.sum())))
    columns = ["round", "set", "weighted", "unweighted", "clients", "images"]
    table = pd.DataFrame(rows, columns=columns)
    return table.sort_values(["set", "round"], ignore_index=True)


def of_runs(runs: pd.DataFrame, clients: pd.DataFrame) -> pd.DataFrame:
    """VAL and HO at every test of the runs in an index: run, seed and the columns of `over_rounds`.

    Args:
        clients: index of a grouping of the same clients, with their numbers of test images.
    Raises: InputError if the grouping lacks a seed of the runs.
    """
    sizes = {seed: validation_sizes(folder) for _, seed, folder in index.each(clients)}
    parts = []
    for run, seed, folder in index.each(runs):
        if seed not in sizes:
            known = ", ".join(map(str, sorted(sizes)))
            raise InputError(f"run {run} has seed {seed}; the grouping of its clients: {known}")
        table = over_rounds(load_rounds(folder), sizes[seed])
        parts.append(table.assign(run=run, seed=seed))
    return pd.concat(parts, ignore_index=True)


def last(table: pd.DataFrame, tests: int = 1, until: int | None = None) -> pd.DataFrame:
    """Means of the last tests of one run in `over_rounds`, indexed by set.

    Args:
        until: last round whose tests are used; None for all.
    """
    known = table if until is None else table[table["round"] <= until]
    ends = known.groupby("set").tail(tests)
    return ends.groupby("set")[["weighted", "unweighted", "images"]].mean()
