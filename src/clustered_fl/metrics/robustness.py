"""How surely a new client lands in the cluster of the one it resembles (REPA Table 1, Algorithm 1).

Robustness is 1 for a single cluster of everybody, and for any other that means nothing but is
stable; sizes of clusters, and how alike their clients are in labels and in pipelines
(`clustered_fl.metrics.likeness`), therefore stand beside it.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from clustered_fl.metrics.curves import Folders
from clustered_fl.metrics.profiles import measurements
from clustered_fl.records import load_record


def by_cluster(folder: Path) -> pd.DataFrame:
    """r(c) of each cluster: cluster, robustness, new_clients, size (of its training clients)."""
    hits = measurements(folder, "robustness").groupby("first")["value"]
    sizes = np.bincount(load_record(Path(folder))["groups"])
    found = pd.DataFrame({"robustness": hits.mean(), "new_clients": hits.size()})
    found = found.rename_axis("cluster").reset_index()
    return found.assign(size=sizes[found["cluster"]])


def passes(folder: Path) -> pd.DataFrame:
    """Algorithm 1 pass by pass.

    Returns:
        Columns cluster, iteration (from 1), reference (client r), hit (0 or 1), hits (n_s so far)
        and robustness (n_s over the passes so far).
    """
    rows = measurements(folder, "robustness")
    names = {"first": "cluster", "second": "reference", "value": "hit"}
    found = rows.rename(columns=names)[list(names.values())].reset_index(drop=True)
    of_cluster = found.groupby("cluster")["hit"]
    found = found.assign(iteration=of_cluster.cumcount() + 1, hits=of_cluster.cumsum())
    return found.assign(robustness=found["hits"] / found["iteration"])


def by_seed(groupings: Folders) -> pd.DataFrame:
    """r(C) of each grouping and seed.

    Returns:
        Columns grouping, seed, robustness (mean over clusters), error (their standard deviation
        over the root of their number), chance (what a placement that does not look at the client
        has, whatever the sizes: one over the number of clusters), clusters, largest (cluster, in
        clients), ari (with the true groups; NaN where there is one group).
    """
    rows = [
        {"grouping": name, "seed": int(seed)} | _of_grouping(Path(folder))
        for name, seeds in groupings.items()
        for seed, folder in seeds.items()
    ]
    return pd.DataFrame(rows)


def _of_grouping(folder: Path) -> dict[str, float]:
    table, record = by_cluster(folder), load_record(folder)
    known = len(set(record["true_groups"])) > 1
    return {
        "robustness": float(table["robustness"].mean()),
        "error": _standard_error(table["robustness"]),
        "chance": 1 / len(table),
        "clusters": len(table),
        "largest": int(table["size"].max()),
        "ari": record["agreement"]["ari"] if known else float("nan"),
    }


def across_seeds(table: pd.DataFrame) -> pd.DataFrame:
    """Means over seeds of what `by_seed` found, and the standard error of r(C) over seeds.

    The paper has one column "SE" and does not say over what: both are given.

    Returns:
        Indexed by grouping; the columns of `by_seed` and seeds, error_over_seeds.
    """
    by_grouping = table.drop(columns="seed").groupby("grouping")
    spread = by_grouping["robustness"].agg(_standard_error)
    return by_grouping.mean().assign(seeds=by_grouping.size(), error_over_seeds=spread)


def _standard_error(values: Sequence[float]) -> float:
    """NaN for a single value."""
    values = np.asarray(values, dtype=np.float64)
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")
