"""How well groupings by profiles reflect the similarity of clients' labels and pipelines.

REPA compares pipelines with an unnamed network. Here it is the profiler's network of the first
grouping that measured similarities, for all groupings of the same clients.
"""

from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from clustered_fl.files import digest
from clustered_fl.metrics.repa.correlation import correlation, correlation_error, label_similarity
from clustered_fl.metrics.repa.profiles import has_measured, label_counts, pairwise
from clustered_fl.metrics.repa.uniformity import mean_within
from clustered_fl.records import index
from clustered_fl.records.reading import load_record

Kind = Literal["labels", "pipelines"]
KINDS: tuple[Kind, ...] = ("labels", "pipelines")


class Judges:
    """The similarities S(i, j) of training clients that groupings in an index have measured."""

    def __init__(self, groupings: pd.DataFrame) -> None:
        self._pipelines: dict[str, np.ndarray] = {}
        for _, _, folder in index.each(groupings):
            if has_measured(folder, "similarity"):
                (found,) = pairwise(folder, "similarity").values()
                self._pipelines.setdefault(_clients(folder), found)

    def similarity(self, folder: Path, kind: Kind) -> np.ndarray | None:
        """S of the clients of the grouping in `folder` [M, M]; None if it is not known."""
        if kind == "pipelines":
            return self._pipelines.get(_clients(folder))
        number = len(load_record(folder)["groups"])
        return label_similarity(label_counts(folder)[:number])


def _clients(folder: Path) -> str:
    """A key that groupings of the same clients share."""
    config = load_record(folder)["config"]
    return digest([config[part] for part in ("dataset", "federation", "seed")])


def by_seed(groupings: pd.DataFrame) -> pd.DataFrame:
    """Similarity statistics of each grouping and seed; NaN if S is unknown.

    Columns: grouping, seed, kind ("labels" or "pipelines"), correlation (of S with the cosine of
    the vectors), correlation_error (by drawing clients), within (mean S within clusters, eq. 7 for
    labels), overall (mean S of all pairs, which random clusters have).
    """
    judges, rows = Judges(groupings), []
    for name, seed, folder in index.each(groupings):
        record, cosines = load_record(folder), pairwise(folder, "cosine")
        groups, now = np.array(record["groups"]), record["config"]["method"].get("round")
        for kind in KINDS:
            similar, found = judges.similarity(folder, kind), (float("nan"),) * 4
            if similar is not None:
                compared = similar, cosines[now or max(cosines)]
                overall = mean_within(np.zeros_like(groups), similar)
                alike = correlation(*compared), correlation_error(*compared)
                found = *alike, mean_within(groups, similar), overall
            rows.append((name, seed, kind, *found))
    columns = ["grouping", "seed", "kind", "correlation", "correlation_error", "within", "overall"]
    return pd.DataFrame(rows, columns=columns)
