"""How well a relatedness agrees with the true groups."""

import numpy as np
from sklearn.metrics import adjusted_rand_score

from clustered_fl.groupings.distances import components


def agreement(related: np.ndarray, true: np.ndarray) -> dict[str, float]:
    """Measures of a relatedness [M, M] against the true groups [M].

    Returns:
        ari: adjusted Rand index of the connected components, 1 for equal partitions.
        components: their number.
        recall: share of the pairs of one true group that are related.
        false_edges: share of the pairs of different true groups that are related.
    NaN where there are no such pairs.
    """
    found = components(related)
    upper = np.triu_indices(len(true), 1)
    same, edge = (true[:, None] == true[None, :])[upper], related[upper] > 0
    return {
        "ari": float(adjusted_rand_score(true, found)),
        "components": float(found.max() + 1),
        "recall": _share(edge[same]),
        "false_edges": _share(edge[~same]),
    }


def _share(values: np.ndarray) -> float:
    return float(values.mean()) if values.size else float("nan")
