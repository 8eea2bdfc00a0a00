"""The evidence that measures read: records of runs and groupings, tables of studies."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from clustered_fl.claims.judging import Estimate
from clustered_fl.ledger.tables import Cell
from clustered_fl.ledger.written import Ledger
from clustered_fl.metrics import accuracy, curves
from clustered_fl.records import index, relatedness
from clustered_fl.records.reading import load_record, load_tables
from clustered_fl.records.relatedness import Relatedness


@dataclass(frozen=True)
class Recorded:
    """A run or grouping of one seed, read on first use."""

    folder: Path

    @cached_property
    def record(self) -> dict[str, Any]:
        """The content of record.json (`clustered_fl.records`)."""
        return load_record(self.folder)

    @property
    def true_groups(self) -> np.ndarray:
        """True group of every training client."""
        return np.array(self.record["true_groups"])


@dataclass(frozen=True)
class RunEvidence(Recorded):
    """One run and seed.

    Attributes:
        measured: reads the measurements in a folder.
    """

    measured: Callable[[Path], pd.DataFrame] = curves.measured

    @property
    def frame(self) -> pd.DataFrame:
        """Measurements: run, seed, round, scope, member, metric, value."""
        return self.measured(self.folder)

    def scores(self) -> pd.DataFrame:
        """Accuracy in % or perplexity by round (rows) and client (columns), without newcomers."""
        if self.record["metric"] == "accuracy":
            return self.accuracies
        clients = self.frame[self.frame["scope"] == "client"]
        rows = curves.metric(clients, self.record["metric"])
        return rows.pivot_table(index="round", columns="member", values="value")

    def tested(self, score: float) -> Estimate:
        """A score of `scores` with its binomial error; that of a perplexity is unknown."""
        if self.record["metric"] != "accuracy":
            return Estimate(score, 0.0)
        return Estimate(score, accuracy.binomial_error(score, self.record["test_rows"]))

    @cached_property
    def accuracies(self) -> pd.DataFrame:
        """Accuracy in % by round (rows) and client (columns), without newcomers."""
        return accuracy.client_scores(self.folder)

    def clients(self, until: float = np.inf) -> pd.Series:
        """Accuracy in % of every client at the last test not after round `until`."""
        return accuracy.at_last(self.accuracies, until)

    def group_metric(self, name: str) -> pd.Series:
        """One metric of the group of all clients, indexed by round; it ends at the first split."""
        rows = curves.metric(self.frame, name)
        return rows[rows["member"] == 0].set_index("round")["value"]

    @property
    def groups(self) -> np.ndarray:
        """Leaf of every training client at the end; a record may have newcomers' after them."""
        return np.array(self.record["groups"])[: len(self.true_groups)]

    def splits(self) -> list[dict[str, Any]]:
        """Nodes that were split, in order of the split."""
        inner = [node for node in self.record["tree"] if node["children"]]
        return sorted(inner, key=lambda node: node["split_round"])

    def is_pure(self, node: int) -> bool:
        """Whether all clients of a node belong to one true group."""
        return len(set(self.true_groups[self.record["tree"][node]["clients"]])) == 1


class GroupingEvidence(Recorded):
    """One grouping and seed."""

    @cached_property
    def found(self) -> Relatedness:
        """The relatedness, without signatures."""
        return relatedness.load(self.folder, signatures=False)

    @cached_property
    def sent(self) -> Relatedness:
        """The same with signatures, points and distances; only some groupings keep them."""
        return relatedness.load(self.folder)


RECENT = 4
"""Groupings, and runs with all their measurements, that are kept in memory: the last ones read.

At full scale, one can take tens of MB; the accuracies of a run take 0.1 MB.
"""


class Kept:
    """Records in memory, because the claims of a paper measure the same ones again and again.

    The accuracies of all runs are kept, because a claim may measure hundreds of runs.
    """

    def __init__(self) -> None:
        measured = lru_cache(RECENT)(curves.measured)
        self.run = cache(lambda folder: RunEvidence(folder, measured))
        self.grouping = lru_cache(RECENT)(GroupingEvidence)


class Label(NamedTuple):
    """Titles of a run or grouping in its table; without a table, `row` is its name.

    Attributes:
        column, row: titles, "" for no column.
        published: numbers of its cell, or of the row with which it is compared.
    """

    column: str
    row: str
    published: dict[str, float]


def labels(ledger: Ledger) -> dict[str, Label]:
    """Run or grouping -> its label; a shared grouping has the label of its first cell."""
    numbers = {(cell.column, cell.row): cell.published for cell in ledger.cells}
    found: dict[str, Label] = {}
    for cell in ledger.cells:
        table = ledger.tables[cell.table]
        titles = table.columns[cell.column].title, table.rows[cell.of].title
        published = cell.published or numbers.get((cell.column, cell.of), {})
        for name in filter(None, (cell.run, cell.grouping)):
            found.setdefault(name, Label(*titles, published))
    return found


@dataclass(frozen=True)
class Evidence:
    """The evidence for one seed.

    Attributes:
        records: the index (`clustered_fl.records.index`), of that seed, and of encoders and
            studies that have a single one.
        labels: run or grouping -> its label.
        cells: of the ledger's tables.
        kept: what was read, for all seeds and claims of one evaluation.
    """

    records: pd.DataFrame
    labels: Mapping[str, Label]
    cells: tuple[Cell, ...] = ()
    kept: Kept = field(default_factory=Kept, repr=False, compare=False)

    @property
    def seed(self) -> int:
        """The seed of all runs and groupings."""
        own = self.records["kind"].isin(["run", "grouping"])
        return int(self.records.loc[own, "seed"].iloc[0])

    def run(self, entry: str) -> RunEvidence:
        """The only run of an entry."""
        return self.members(entry)[0]

    def members(self, entry: str) -> list[RunEvidence]:
        """All runs of an entry: one per value of its sweep."""
        return [self.kept.run(folder) for _, _, folder in index.each(self.runs(entry))]

    def runs(self, *entries: str) -> pd.DataFrame:
        """The index of these runs, as `clustered_fl.metrics` reads it."""
        return index.chosen(self.records, "run", *entries)

    def grouping(self, name: str) -> GroupingEvidence:
        """A grouping."""
        return self.kept.grouping(index.folder(self.records, "grouping", name))

    def groupings(self, *names: str) -> pd.DataFrame:
        """The index of these groupings."""
        return index.chosen(self.records, "grouping", *names)

    def study(self, name: str) -> dict[str, pd.DataFrame]:
        """Tables of a study."""
        return load_tables(index.folder(self.records, "study", name))

    def label(self, name: str) -> Label:
        """The label of a run or grouping."""
        return self.labels.get(name, Label("", name, {}))

    def by_column(self, names: Iterable[str]) -> dict[str, list[str]]:
        """Runs or groupings by the column of their table, in the order given."""
        found: dict[str, list[str]] = {}
        for name in names:
            found.setdefault(self.label(name).column, []).append(name)
        return found
