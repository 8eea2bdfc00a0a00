"""Rows with owners: their numbers, and a test set for every owner."""

from itertools import compress

import numpy as np
import pandas as pd

from clustered_fl.data.dataset import Split
from clustered_fl.randomness import generator


def numbered(train: Split, test: Split) -> np.ndarray:
    """Owner of each row, training then test, int64 [N], numbered by sorted name; empty if none."""
    names = np.concatenate([train.owners, test.owners])
    return np.unique(names, return_inverse=True)[1].astype(np.int64)


def divide(whole: Split) -> dict[str, Split]:
    """Split each owner's rows into "train" and "test", for data published as one split.

    An owner keeps 90% of its rows for training, rounded down, but at least one. The random draw
    depends on the owner's name only, so missing owners do not affect others. Rows keep their order.
    Source: LEAF, `split_data.py` by samples with a training fraction of 0.9, also random.
    """
    held_out = np.zeros(len(whole.labels), bool)
    for name, rows in pd.Series(whole.labels).groupby(whole.owners).indices.items():
        kept = max(1, len(rows) * 9 // 10)
        held_out[generator(0, f"test rows of {name}").permutation(rows)[kept:]] = True
    return {"train": _part(whole, ~held_out), "test": _part(whole, held_out)}


def _part(whole: Split, chosen: np.ndarray) -> Split:
    is_text = isinstance(whole.rows, list)
    rows = list(compress(whole.rows, chosen)) if is_text else whole.rows[chosen]
    return Split(rows, whole.labels[chosen], whole.classes, whole.owners[chosen])
