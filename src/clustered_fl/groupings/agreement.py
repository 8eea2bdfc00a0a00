"""How well a relatedness agrees with the true groups."""

import numpy as np
from sklearn.metrics import adjusted_rand_score

from clustered_fl.groupings.distances import components


def agreement(related: np.ndarray, true: np.ndarray) -> dict[str, float]:
    """Measures of a relatedness [M, M] against the true groups [M].

    Returns:
        ari: adjusted Rand index of the connected components, 1 for equal partitions.
        components: number of connected components.
        recall: fraction of pairs within a true group that are related, NaN if there are none.
        false_edges: fraction of pairs across true groups that are related, NaN if there are none.
    """
    found, upper = components(related), np.triu_indices(len(true), 1)
    same, edge = (true[:, None] == true[None, :])[upper], related[upper] > 0
    return {
        "ari": float(adjusted_rand_score(true, found)),
        "components": float(found.max() + 1),
        "recall": float(edge[same].mean()) if same.any() else float("nan"),
        "false_edges": float(edge[~same].mean()) if not same.all() else float("nan"),
    }
