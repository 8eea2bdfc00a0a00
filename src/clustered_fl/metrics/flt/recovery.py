"""Agreement of groupings with the true groups, and structure of a relatedness.

Source: Jamali-Rad, Abdizadeh, Singh (TNNLS 2023), Algorithm 2 and Figs 1 to 3. UMAP is random: a
setting is scored over all seeds of the clients (seed) and of UMAP (umap_seed).
"""

import numpy as np
import pandas as pd
from scipy.cluster.hierarchy import leaves_list, linkage
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.metrics import silhouette_score

from clustered_fl.groupings.distances import cut
from clustered_fl.records import index
from clustered_fl.records.reading import load_record
from clustered_fl.records.relatedness import Relatedness, load_comparisons

SETTING = ["grouping", "clusters", "k", "distance", "gamma"]


def comparisons(groupings: pd.DataFrame) -> pd.DataFrame:
    """Agreement of all settings that the groupings in an index of records have compared.

    Columns: grouping, seed, clusters (the true number), k, distance, gamma, umap_seed, ari,
    components, recall, false_edges.
    """
    parts = []
    for name, seed, folder in index.each(groupings):
        clusters = len(set(load_record(folder)["true_groups"]))
        table = load_comparisons(folder)
        parts.append(table.assign(grouping=name, seed=seed, clusters=clusters))
    return pd.concat(parts, ignore_index=True)


def over_seeds(table: pd.DataFrame) -> pd.DataFrame:
    """Statistics of `comparisons` by grouping and setting, over seeds of clients and UMAP.

    Columns: ari, components, recall, false_edges (means), ari_min, ari_max, exact (number of trials
    that found the true groups), trials.
    """
    by_setting = table.assign(exact=table["ari"] == 1).groupby(SETTING)
    found = by_setting[["ari", "components", "recall", "false_edges"]].mean()
    ari, exact = by_setting["ari"], by_setting["exact"].sum()
    return found.assign(ari_min=ari.min(), ari_max=ari.max(), trials=ari.size(), exact=exact)


def agreements(groupings: pd.DataFrame) -> pd.DataFrame:
    """Agreement of each grouping: as `comparisons` without k, distance, gamma, umap_seed."""
    rows = []
    for name, seed, folder in index.each(groupings):
        record = load_record(folder)
        about = {"grouping": name, "seed": seed, "clusters": len(set(record["true_groups"]))}
        rows.append(about | record["agreement"])
    return pd.DataFrame(rows)


def density(related: np.ndarray) -> float:
    """Fraction of all pairs of clients that are `related` [M, M]."""
    return float((related[np.triu_indices(len(related), 1)] > 0).mean())


def inside(related: np.ndarray, groups: np.ndarray) -> float:
    """Fraction of related pairs within a group; NaN without related pairs."""
    first, second = np.nonzero(np.triu(related, 1))
    return float((groups[first] == groups[second]).mean()) if len(first) else float("nan")


def ward_tree(related: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ward's dendrogram of a relatedness, SciPy's [M - 1, 4], and clients in leaf order."""
    tree = linkage(related.astype(np.float64), method="ward")
    return tree, leaves_list(tree).astype(np.int64)


def proposed(related: np.ndarray) -> np.ndarray:
    """Ward's clusters below the largest gap between two merges of `related` [M, M]: int64 [M].

    At least two clusters: the gap above the last merge is infinite. One client is one cluster.
    """
    if len(related) < 3:
        return np.arange(len(related))
    tree, _ = ward_tree(related)
    # Heights of the M - 1 merges ascend; after the i-th, M - i clusters are left.
    return cut(tree, len(related) - 1 - int(np.argmax(np.diff(tree[:, 2]))))


def principal(vectors: np.ndarray, dimensions: int) -> np.ndarray:
    """Scores [n, dimensions] of `vectors` [n, e] on principal components, with a fixed sign."""
    return PCA(dimensions, svd_solver="full").fit_transform(vectors.astype(np.float64))


def layouts(found: Relatedness) -> dict[str, np.ndarray]:
    """Signatures laid out in three ways, one row for each of the k centres of a client.

    "UMAP" [M k, 2], "three axes" (principal components) [M k, 3], "all dimensions" [M k, e].
    """
    clients, k, _ = found.points.shape
    sent = found.signatures[:clients].reshape(clients * k, -1)
    plane = found.points.reshape(clients * k, -1)
    return {"UMAP": plane, "three axes": principal(sent, 3), "all dimensions": sent}


def silhouettes(found: Relatedness, groups: int) -> dict[str, float]:
    """Silhouettes of groups of signatures in each of the `layouts`.

    Signatures have no labels. The groups are found by k-means in the layout itself, as a reader of
    the picture would see them.
    """
    return {name: _silhouette(points, groups) for name, points in layouts(found).items()}


def _silhouette(points: np.ndarray, groups: int) -> float:
    """Silhouette of the k-means groups of `points` [n, d]."""
    points = points.astype(np.float64)
    labels = KMeans(groups, n_init=10, random_state=0).fit_predict(points)
    return float(silhouette_score(points, labels))
