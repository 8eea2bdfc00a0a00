"""Probability that a new client is placed in its reference client's cluster (REPA Algorithm 1).

See also REPA Table 1. Robustness is 1 for a single cluster, and high for any stable clustering,
even a meaningless one. It is therefore shown with the clusters' sizes and likeness
(`clustered_fl.metrics.repa.likeness`).
"""

from pathlib import Path

import numpy as np
import pandas as pd

from clustered_fl.metrics.repa.profiles import measurements
from clustered_fl.records import index
from clustered_fl.records.reading import load_record


def by_cluster(folder: Path) -> pd.DataFrame:
    """r(c) of each cluster: cluster, robustness, new_clients, size (of its training clients)."""
    hits = measurements(folder, "robustness").groupby("first")["value"]
    sizes = np.bincount(load_record(Path(folder))["groups"])
    found = pd.DataFrame({"robustness": hits.mean(), "new_clients": hits.size()})
    found = found.rename_axis("cluster").reset_index()
    return found.assign(size=sizes[found["cluster"]])


def passes(folder: Path) -> pd.DataFrame:
    """Algorithm 1 pass by pass.

    Columns: cluster, iteration (from 1), reference (client r), hit (0 or 1), hits (n_s so far),
    robustness (n_s over the passes so far).
    """
    rows = measurements(folder, "robustness")
    names = {"first": "cluster", "second": "reference", "value": "hit"}
    found = rows.rename(columns=names)[list(names.values())].reset_index(drop=True)
    of_cluster = found.groupby("cluster")["hit"]
    found = found.assign(iteration=of_cluster.cumcount() + 1, hits=of_cluster.cumsum())
    return found.assign(robustness=found["hits"] / found["iteration"])


def by_seed(groupings: pd.DataFrame) -> pd.DataFrame:
    """r(C) of each grouping and seed in an index of records.

    Columns: grouping, seed, robustness (mean over clusters), error (their standard deviation over
    the root of their number), chance (of a placement that ignores the client: one over the number
    of clusters), clusters, largest (in clients), ari (NaN where there is one true group).
    """
    rows = []
    for name, seed, folder in index.each(groupings):
        table, record = by_cluster(folder), load_record(folder)
        found = table["robustness"]
        about = {"grouping": name, "seed": seed, "robustness": float(found.mean())}
        about |= {"error": found.sem(), "chance": 1 / len(table), "clusters": len(table)}
        known = len(set(record["true_groups"])) > 1
        ari = record["agreement"]["ari"] if known else float("nan")
        rows.append(about | {"largest": int(table["size"].max()), "ari": ari})
    return pd.DataFrame(rows)


def across_seeds(table: pd.DataFrame) -> pd.DataFrame:
    """Means over seeds of the columns of `by_seed`, and the standard error of r(C) over seeds.

    The paper's column "SE" does not say over what, so both errors are given. Indexed by grouping;
    the columns of `by_seed` and seeds, error_over_seeds.
    """
    by_grouping = table.drop(columns="seed").groupby("grouping")
    spread = by_grouping["robustness"].agg(lambda values: values.sem())
    return by_grouping.mean().assign(seeds=by_grouping.size(), error_over_seeds=spread)
