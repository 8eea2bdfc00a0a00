"""Rows with owners: numbering who wrote them, and giving every writer a test set of their own."""

from itertools import compress

import numpy as np

from clustered_fl.data.dataset import Split
from clustered_fl.randomness import generator


def numbered(train: Split, test: Split) -> np.ndarray:
    """Owner of every training row, then of every test row, int64 [N]; empty if there are none.

    Numbers follow the sorted names over both splits, so they do not depend on the order of rows.
    """
    names = np.concatenate([train.owners, test.owners])
    return np.unique(names, return_inverse=True)[1].astype(np.int64)


def divide(whole: Split) -> dict[str, Split]:
    """Cut one split into "train" and "test" inside every owner, for a publisher who made one.

    An owner of n rows keeps floor(0.9 n) of them for training but at least one, so whoever has two
    or more also has a test row. Which ones is drawn per owner, by name: owners that are missing
    and rows of others in between change nothing. Rows keep their order.

    Source: LEAF, `split_data.py` by samples with a training fraction of 0.9, which draws as well.
    """
    held_out = np.zeros(len(whole.labels), bool)
    names, owner, rows_of = np.unique(whole.owners, return_inverse=True, return_counts=True)
    grouped = np.split(np.argsort(owner, kind="stable"), np.cumsum(rows_of)[:-1])
    for name, rows in zip(names, grouped, strict=True):
        kept = max(1, len(rows) * 9 // 10)
        held_out[generator(0, f"test rows of {name}").permutation(rows)[kept:]] = True
    return {"train": _part(whole, ~held_out), "test": _part(whole, held_out)}


def _part(whole: Split, chosen: np.ndarray) -> Split:
    is_text = isinstance(whole.rows, list)
    rows = list(compress(whole.rows, chosen)) if is_text else whole.rows[chosen]
    return Split(rows, whole.labels[chosen], whole.classes, whole.owners[chosen])
