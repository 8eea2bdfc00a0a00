"""Agreement of a run's grouping with the true groups."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score

from clustered_fl.data.label_maps import single_model_ceiling

Record = Mapping[str, Any]


def index(first: Sequence[int], second: Sequence[int]) -> float:
    """Adjusted Rand index of two groupings of the same clients: 1 if they are the same."""
    return float(adjusted_rand_score(first, second))


def ceiling(record: Record) -> float:
    """Best possible mean accuracy of a single model for all training clients."""
    maps = np.array(record["label_maps"])
    return single_model_ceiling(maps[: len(record["true_groups"])])


def newcomers_at_home(record: Record) -> list[bool]:
    """For each newcomer, whether all clients of its leaf belong to its true group."""
    truth = dict(enumerate(record["true_groups"]))
    truth |= {new["client"]: new["true_group"] for new in record["newcomers"]}
    return [
        {truth[client] for client in new["clients"]} == {new["true_group"]}
        for new in record["newcomers"]
    ]
