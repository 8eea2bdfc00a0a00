"""Accuracy on the validation images of training and of holdout clients (REPA's VAL and HO).

REPA does not say whether a client counts by its images or as one; both are given.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from clustered_fl.errors import InputError
from clustered_fl.metrics.accuracy import Families
from clustered_fl.metrics.profiles import validation_sizes
from clustered_fl.records import load_rounds

SETS = {"client": "VAL", "newcomer": "HO"}


def over_rounds(rounds: pd.DataFrame, sizes: np.ndarray) -> pd.DataFrame:
    """VAL and HO at every test of one run.

    Args:
        rounds: its measurements, as `records.load_rounds` reads them.
        sizes: test images of each client, newcomers last, [M + newcomers].
    Returns:
        Columns round, set ("VAL" or "HO"), weighted and unweighted accuracy in %, clients.
    """
    scores = rounds[(rounds["metric"] == "accuracy") & rounds["scope"].isin(list(SETS))]
    rows = [
        {"round": int(now), "set": SETS[scope]} | _means(own, sizes)
        for (now, scope), own in scores.groupby(["round", "scope"])
    ]
    table = pd.DataFrame(rows, columns=["round", "set", "weighted", "unweighted", "clients"])
    return table.sort_values(["set", "round"], ignore_index=True)


def of_runs(families: Families, clients: Mapping[int | str, str]) -> pd.DataFrame:
    """VAL and HO at every test of many runs with the same clients.

    Args:
        families: of runs.
        clients: seed -> folder of a grouping of these clients, which says how many images they are
            tested on.
    Returns:
        Columns run, seed and those of `over_rounds`.
    Raises:
        InputError: if the grouping lacks a seed of the runs.
    """
    sizes = {int(seed): validation_sizes(Path(folder)) for seed, folder in clients.items()}
    parts = []
    for run, seeds in (pair for runs in families.values() for pair in runs.items()):
        for seed, folder in seeds.items():
            if int(seed) not in sizes:
                known = ", ".join(map(str, sorted(sizes)))
                raise InputError(f"run {run} has seed {seed}; the grouping of its clients: {known}")
            table = over_rounds(load_rounds(Path(folder)), sizes[int(seed)])
            parts.append(table.assign(run=run, seed=int(seed)))
    return pd.concat(parts, ignore_index=True)


def _means(own: pd.DataFrame, sizes: np.ndarray) -> dict[str, float]:
    values = 100 * own["value"].to_numpy()
    weighted = np.average(values, weights=sizes[own["member"].to_numpy()])
    return {"weighted": weighted, "unweighted": values.mean(), "clients": len(own)}


def last(table: pd.DataFrame, tests: int = 1) -> pd.DataFrame:
    """Means of the last tests of what `over_rounds` found, indexed by set."""
    ends = table.groupby("set").tail(tests)
    return ends.groupby("set")[["weighted", "unweighted"]].mean()
