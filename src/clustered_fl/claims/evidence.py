"""What predicates may look at: measurements and records of runs, tables of studies."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from clustered_fl import relatedness
from clustered_fl.metrics import curves
from clustered_fl.records import load_record
from clustered_fl.relatedness import Relatedness
from clustered_fl.studies import load_tables


@dataclass(frozen=True)
class RunEvidence:
    """One run and seed, read when asked for."""

    folder: Path

    @cached_property
    def record(self) -> dict[str, Any]:
        """Configuration, grouping, parameter tree, newcomers (see `clustered_fl.records`)."""
        return load_record(self.folder)

    @cached_property
    def frame(self) -> pd.DataFrame:
        """Measurements: round, scope, member, metric, value."""
        return curves.measurements({self.folder.parent.name: {0: str(self.folder)}})

    def scores(self) -> pd.DataFrame:
        """Accuracy or perplexity by round (rows) and client (columns)."""
        rows = curves.metric(self.frame, self.record["metric"])
        return rows.pivot_table(index="round", columns="member", values="value")

    def group_metric(self, name: str) -> pd.Series:
        """One metric of the run's only group, indexed by round."""
        return curves.metric(self.frame, name).set_index("round")["value"]

    @property
    def true_groups(self) -> np.ndarray:
        """True group of every training client."""
        return np.array(self.record["true_groups"])

    @property
    def groups(self) -> np.ndarray:
        """Leaf of every training client at the end."""
        return np.array(self.record["groups"])

    def splits(self) -> list[dict[str, Any]]:
        """Nodes that were split, in order of the split."""
        inner = [node for node in self.record["tree"] if node["children"]]
        return sorted(inner, key=lambda node: node["split_round"])

    def is_pure(self, node: int) -> bool:
        """Whether all clients of a node are of one true group."""
        return len(set(self.true_groups[self.record["tree"][node]["clients"]])) == 1


@dataclass(frozen=True)
class GroupingEvidence:
    """One grouping and seed, read when asked for."""

    folder: Path

    @cached_property
    def record(self) -> dict[str, Any]:
        """Configuration, groups, true groups, agreement."""
        return load_record(self.folder)

    @cached_property
    def found(self) -> Relatedness:
        """The arrays."""
        return relatedness.load(self.folder)

    @cached_property
    def comparisons(self) -> pd.DataFrame:
        """Agreement of other settings: k, distance, gamma, umap_seed, ari, components, ..."""
        return pd.read_parquet(self.folder / relatedness.COMPARISONS)

    @property
    def true_groups(self) -> np.ndarray:
        """True group of every client."""
        return np.array(self.record["true_groups"])


@dataclass(frozen=True)
class Evidence:
    """Everything a claim names, for one seed.

    Attributes:
        runs: family of the ledger -> run -> folder of the record of this seed; a grouping is a
            family of one.
        studies: name -> folder.
    """

    runs: dict[str, dict[str, Path]]
    studies: dict[str, Path]

    def run(self, family: str) -> RunEvidence:
        """The only run of a family."""
        return self.members(family)[0]

    def members(self, family: str) -> list[RunEvidence]:
        """All runs of a family: one per value of its sweep."""
        return [RunEvidence(folder) for folder in self.runs[family].values()]

    def grouping(self, name: str) -> GroupingEvidence:
        """A grouping."""
        return GroupingEvidence(self.runs[name][name])

    def folders(self, *families: str) -> curves.Folders:
        """Folder of every run of these families, as `clustered_fl.metrics` reads them."""
        return {
            run: {0: str(folder)}
            for family in families
            for run, folder in self.runs[family].items()
        }

    def study(self, name: str) -> dict[str, pd.DataFrame]:
        """Tables of a study."""
        return load_tables(self.studies[name])
