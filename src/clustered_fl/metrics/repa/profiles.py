"""Measurements of groupings by profiles, as arrays.

Columns (`clustered_fl.groupings.profiles.measurements`): measure, round, first, second, value.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from clustered_fl.errors import InputError
from clustered_fl.records import index
from clustered_fl.records.reading import load_record
from clustered_fl.records.relatedness import load_comparisons


def _rows(folder: Path, measure: str) -> pd.DataFrame:
    table = load_comparisons(Path(folder))
    return table[table["measure"] == measure] if "measure" in table else table[:0]


def has_measured(folder: Path, measure: str) -> bool:
    """Whether a grouping has rows of one measure."""
    return not _rows(folder, measure).empty


def measurements(folder: Path, measure: str) -> pd.DataFrame:
    """The rows of one measure; InputError if the grouping did not measure it."""
    rows = _rows(folder, measure)
    if rows.empty:
        raise InputError(f"{folder} has no measurements of {measure}; ask for them in the ledger")
    return rows


def asked_clusters(records: pd.DataFrame, grouping: str) -> int:
    """Number of clusters in a grouping's settings (it may find fewer); 1 for ""."""
    if not grouping:
        return 1
    record = load_record(index.folder(records, "grouping", grouping))
    return int(record["config"]["method"]["clusters"])


def label_counts(folder: Path) -> np.ndarray:
    """Label counts of clients, d_i: int64 [M + newcomers, classes]."""
    rows = measurements(folder, "labels")
    return rows.pivot_table("value", index="first", columns="second").to_numpy().astype(np.int64)


def validation_sizes(folder: Path) -> np.ndarray:
    """Number of test images of each client: int64 [M + newcomers]."""
    rows = measurements(folder, "tests").sort_values("first")
    return rows["value"].to_numpy().astype(np.int64)


def pairwise(folder: Path, measure: str) -> dict[int, np.ndarray]:
    """A symmetric measure of the training clients: round -> float64 [M, M], 1 on the diagonal."""
    found = {}
    for now, rows in measurements(folder, measure).groupby("round"):
        matrix = np.eye(int(rows["second"].max()) + 1)
        first, second = rows["first"].to_numpy(), rows["second"].to_numpy()
        matrix[first, second] = matrix[second, first] = rows["value"].to_numpy()
        found[int(now)] = matrix
    return found
