"""How well groupings agree with the true groups, and how block-like a relatedness is.

Source: Jamali-Rad, Abdizadeh, Singh (TNNLS 2022), Algorithm 2 and Figs 1 to 3. UMAP is random, so
that a setting is judged by all of its seeds: of the clients (seed) and of UMAP (umap_seed).
"""

from pathlib import Path

import numpy as np
import pandas as pd
from scipy.cluster.hierarchy import leaves_list, linkage

from clustered_fl.metrics.curves import Folders
from clustered_fl.records import load_record
from clustered_fl.relatedness import COMPARISONS

SETTING = ["grouping", "clusters", "k", "distance", "gamma"]


def comparisons(groupings: Folders) -> pd.DataFrame:
    """Agreement of all compared settings of these groupings.

    Args:
        groupings: name -> seed -> folder.
    Returns:
        Columns grouping, seed, clusters (the true number), k, distance, gamma, umap_seed, ari,
        components, recall, false_edges.
    """
    parts = []
    for name, seeds in groupings.items():
        for seed, folder in seeds.items():
            clusters = len(set(load_record(Path(folder))["true_groups"]))
            table = pd.read_parquet(Path(folder) / COMPARISONS)
            parts.append(table.assign(grouping=name, seed=int(seed), clusters=clusters))
    return pd.concat(parts, ignore_index=True)


def over_seeds(table: pd.DataFrame) -> pd.DataFrame:
    """What `comparisons` found, put together over all seeds of the clients and of UMAP.

    Returns:
        One row per grouping and setting: ari (mean), ari_min, ari_max, exact (number of trials that
        found the true groups), trials, and the means of components, recall and false_edges.
    """
    by_setting = table.groupby(SETTING)
    found = by_setting[["ari", "components", "recall", "false_edges"]].mean()
    ari = by_setting["ari"]
    found = found.assign(ari_min=ari.min(), ari_max=ari.max(), trials=ari.size())
    return found.assign(exact=(table["ari"] == 1).groupby([table[s] for s in SETTING]).sum())


def agreements(groupings: Folders) -> pd.DataFrame:
    """Agreement of the relatedness that each grouping found with its own settings.

    Returns:
        Columns grouping, seed, clusters, ari, components, recall, false_edges.
    """
    rows = []
    for name, seeds in groupings.items():
        for seed, folder in seeds.items():
            record = load_record(Path(folder))
            about = {"grouping": name, "seed": int(seed)}
            about["clusters"] = len(set(record["true_groups"]))
            rows.append(about | record["agreement"])
    return pd.DataFrame(rows)


def density(related: np.ndarray) -> float:
    """Share of all pairs of clients that are related [M, M]."""
    return float((related[np.triu_indices(len(related), 1)] > 0).mean())


def inside(related: np.ndarray, groups: np.ndarray) -> float:
    """Share of the related pairs whose clients are in one group; NaN if nobody is related."""
    first, second = np.nonzero(np.triu(related, 1))
    return float((groups[first] == groups[second]).mean()) if len(first) else float("nan")


def ward_tree(related: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ward's dendrogram of the rows of a relatedness, and the clients in the order of its leaves.

    Returns:
        SciPy's linkage matrix [M - 1, 4] and int64 [M].
    """
    tree = linkage(related.astype(np.float64), method="ward")
    return tree, leaves_list(tree).astype(np.int64)


def principal(vectors: np.ndarray, dimensions: int) -> np.ndarray:
    """Scores [n, dimensions] of `vectors` [n, e] on their first principal components.

    Signs are such that the largest loading is positive.
    """
    centred = vectors.astype(np.float64) - vectors.mean(0)
    loadings = np.linalg.svd(centred, full_matrices=False)[2][:dimensions]
    largest = np.abs(loadings).argmax(1)
    signs = np.sign(loadings[np.arange(len(loadings)), largest])
    return centred @ (loadings * signs[:, None]).T
