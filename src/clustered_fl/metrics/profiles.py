"""What groupings by profiles leave in their table of measurements, as arrays.

The table is that of `clustered_fl.groupings.profiles.measurements`: measure, round, first, second,
value.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from clustered_fl.errors import InputError
from clustered_fl.records import load_record
from clustered_fl.relatedness import COMPARISONS


def measurements(folder: Path, measure: str) -> pd.DataFrame:
    """The rows of one measure.

    Raises:
        InputError: if the grouping did not measure it.
    """
    table = pd.read_parquet(Path(folder) / COMPARISONS)
    rows = table[table["measure"] == measure] if "measure" in table else table[:0]
    if rows.empty:
        raise InputError(f"{folder} has no measurements of {measure}; ask for them in the ledger")
    return rows


def asked_clusters(seeds: Mapping[int | str, str]) -> int:
    """Number of clusters that a grouping was asked for, of which it can fall short.

    Args:
        seeds: seed -> folder.
    """
    record = load_record(Path(next(iter(seeds.values()))))
    return int(record["config"]["method"]["clusters"])


def has_measured(folder: Path, measure: str) -> bool:
    """Whether a grouping has rows of one measure."""
    table = pd.read_parquet(Path(folder) / COMPARISONS)
    return "measure" in table and bool((table["measure"] == measure).any())


def label_counts(folder: Path) -> np.ndarray:
    """Images of each label by which a client is described, d_i: int64 [M + newcomers, classes]."""
    rows = measurements(folder, "labels")
    return _matrix(rows).astype(np.int64)


def validation_sizes(folder: Path) -> np.ndarray:
    """Images that a client is tested on: int64 [M + newcomers]."""
    rows = measurements(folder, "tests").sort_values("first")
    return rows["value"].to_numpy().astype(np.int64)


def pairwise(folder: Path, measure: str) -> dict[int, np.ndarray]:
    """A symmetric measure of the training clients: round -> float64 [M, M], 1 on the diagonal."""
    rows = measurements(folder, measure)
    return {int(now): _symmetric(own) for now, own in rows.groupby("round")}


def _symmetric(rows: pd.DataFrame) -> np.ndarray:
    clients = int(rows["second"].max()) + 1
    found = np.eye(clients)
    first, second = rows["first"].to_numpy(), rows["second"].to_numpy()
    found[first, second] = found[second, first] = rows["value"].to_numpy()
    return found


def _matrix(rows: pd.DataFrame) -> np.ndarray:
    return rows.pivot_table(index="first", columns="second", values="value").to_numpy()
