"""A benchmark as its pages show it: every method in every setting, and every pair of methods.

Two methods are compared seed by seed, because runs of one seed have the same clients. A setting is
shown for the seeds that all its methods have, as claims are judged. Whether a difference is clear
is decided as for claims, too (`claims.judging`).
"""

import json
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from statistics import fmean

import pandas as pd

from clustered_fl.claims.judging import Estimate, intervals_of, judge
from clustered_fl.ledger.tables import Cell, Column, Row
from clustered_fl.metrics.accuracy import binomial_error, scores_of
from clustered_fl.metrics.ground.budgets import at_budget
from clustered_fl.metrics.ground.matrix import groups_of
from clustered_fl.records.archive import Key, Packed
from clustered_fl.records.reading import RECORD, ROUNDS
from clustered_fl.report.entries import ArtefactEntry, ComputedEntry, PaperEntry
from clustered_fl.report.evidence import Records
from clustered_fl.report.numbers import span

AHEAD, BEHIND, UNCLEAR = "ahead", "behind", "not clear"


@dataclass(frozen=True)
class Spread:
    """Mean, least and largest of one number over seeds."""

    values: list[float]

    @property
    def mean(self) -> float:
        """Over the seeds."""
        return fmean(self.values)

    @property
    def low(self) -> float:
        """Least."""
        return min(self.values)

    @property
    def high(self) -> float:
        """Largest."""
        return max(self.values)

    @property
    def seeds(self) -> int:
        """Number of values."""
        return len(self.values)


@dataclass(frozen=True)
class Difference(Spread):
    """By how many points of accuracy one method is ahead of another in one setting.

    Attributes:
        interval: half the width of its confidence interval, see `intervals_of`.
        word: `AHEAD`, `BEHIND` or `UNCLEAR`.
    """

    interval: float
    word: str


@dataclass(frozen=True)
class Score:
    """What one method reached in one setting.

    Attributes:
        run: name of the ledger's entry.
        accuracies: seed -> %, mean over clients and the last tests (`metrics.ground.budgets`), with
            the error of its test images.
        agreement: adjusted Rand index with the true groups; None where there are none.
        groups: number of groups found; None where no record says so.
    """

    run: str
    accuracies: dict[int, Estimate]
    agreement: Spread | None
    groups: Spread | None

    @property
    def accuracy(self) -> Spread:
        """Over the seeds, in %."""
        return Spread([float(value) for value in self.accuracies.values()])

    @property
    def shown(self) -> float:
        """The mean accuracy to the digits that pages show."""
        return round(self.accuracy.mean, 1)


@dataclass(frozen=True)
class Comparison:
    """All methods in all settings.

    Attributes:
        settings, methods: what is shown of the table, by name and in its order.
        scores: (setting, method) -> score, for what was computed.
        baseline: method that others are compared with first; "" if there is none.
    """

    settings: dict[str, Column]
    methods: dict[str, Row]
    cells: dict[tuple[str, str], Cell]
    scores: dict[tuple[str, str], Score]
    baseline: str

    def runs(self, setting: str) -> list[str]:
        """Names of the runs of a setting, whether they were computed or not."""
        return [cell.run for (column, _), cell in self.cells.items() if column == setting]

    def ranked(self, setting: str) -> list[str]:
        """The methods of a setting that were computed, the most accurate first."""
        own = [method for method in self.methods if (setting, method) in self.scores]
        return sorted(own, key=lambda each: -self.scores[setting, each].accuracy.mean)

    def rank(self, setting: str, method: str) -> int:
        """Place of a method in a setting; methods that are equal as they are shown share it."""
        shown = {each: self.scores[setting, each].shown for each in self.ranked(setting)}
        return 1 + sum(each > shown[method] for each in shown.values())

    def settings_of(self, method: str) -> list[str]:
        """The settings in which a method was computed."""
        return [setting for setting in self.settings if (setting, method) in self.scores]

    @cached_property
    def differences(self) -> dict[tuple[str, str, str], Difference]:
        """(setting, method, other method) -> difference, where they have a seed in common."""
        return {
            (setting, method, other): found
            for setting in self.settings
            for method in self.ranked(setting)
            for other in self.ranked(setting)
            if method != other
            and (found := _difference(self.scores[setting, method], self.scores[setting, other]))
        }

    def gain(self, setting: str, method: str) -> Difference | None:
        """Difference from the baseline."""
        return self.differences.get((setting, method, self.baseline))

    @property
    def seeds(self) -> str:
        """On how many seeds accuracies rest: `1`, `1 to 3`; "" if there are none."""
        return self.seeds_in(*self.settings)

    def seeds_in(self, *settings: str) -> str:
        """On how many seeds the accuracies of these settings rest."""
        own = [self.scores[each, method] for each in settings for method in self.ranked(each)]
        return span(len(score.accuracies) for score in own)


def _difference(own: Score, other: Score) -> Difference | None:
    seeds = own.accuracies.keys() & other.accuracies.keys()
    found = [{"lead": own.accuracies[s] - other.accuracies[s]} for s in sorted(seeds)]
    if not found:
        return None
    signs = {AHEAD: "> 0", BEHIND: "< 0"}
    clear = (word for word, sign in signs.items() if judge({"lead": sign}, found) == "CONFIRMED")
    values = [float(each["lead"]) for each in found]
    return Difference(values, intervals_of(found)["lead"], next(clear, UNCLEAR))


def compared(paper: PaperEntry, records: Records) -> Comparison | None:
    """The comparison built from a benchmark's records; None if the paper is not a benchmark."""
    if not (name := paper.ledger.comparison):
        return None
    table = paper.ledger.tables[name]
    cells = {(cell.column, cell.row): cell for cell in paper.ledger.chosen(name, [], [])}
    runs = {place: paper.computed["runs"].get(cell.run) for place, cell in cells.items()}
    done = {place: run for place, run in runs.items() if run is not None and run.done}
    seeds: dict[str, set[int]] = {}
    for (setting, _), run in done.items():
        own = {seed.seed for seed in run.done}
        seeds[setting] = seeds.get(setting, own) & own
    scores = {}
    for (setting, method), run in done.items():
        grouping = paper.computed["groupings"].get(cells[setting, method].grouping)
        truth = table.columns[setting].truth
        scores[setting, method] = _score(run, grouping or run, truth, seeds[setting], records)
    methods = {name: row for name, row in table.rows.items() if not row.hidden}
    baseline = (n for n, row in methods.items() if (row.method or {}).get("name") == "fedavg")
    return Comparison(table.columns, methods, cells, scores, next(baseline, ""))


def _score(
    run: ComputedEntry, finder: ComputedEntry, truth: bool, seeds: Collection[int], records: Records
) -> Score:
    """What a run's records say for these seeds; `finder`, it or a grouping, found the groups."""
    found = list(_found(finder, seeds))
    agreements = [agreement for agreement, _ in found] if truth else []
    return Score(
        run.name,
        {seed: accuracy_in(records[Key("run", run.name, seed)]) for seed in sorted(seeds)},
        Spread(agreements) if agreements else None,
        Spread([number for _, number in found]) if found else None,
    )


def accuracy_in(packed: Packed, at: Callable[[pd.DataFrame], pd.Series] = at_budget) -> Estimate:
    """Mean accuracy over clients of an archived run, in %, with its binomial error.

    `at` chooses the tests: the scores of every test -> a score of each client.
    """
    scores = scores_of(pd.read_parquet(BytesIO(packed.files[ROUNDS])))
    percent = float(at(scores).mean())
    return Estimate(percent, binomial_error(percent, json.loads(packed.files[RECORD])["test_rows"]))


def _found(entry: ComputedEntry, seeds: Collection[int]) -> Iterator[tuple[float, float]]:
    """Agreement and number of the groups in the records of a grouping or a run for these seeds."""
    return (groups_of(seed.record) for seed in entry.done if seed.seed in seeds)


def curves(paper: PaperEntry, setting: str) -> ArtefactEntry | None:
    """The figure that shows this setting and no other."""
    shown = ((each, each.about.cells) for each in paper.artefacts if each.size)
    return next((each for each, cells in shown if cells and cells.columns == [setting]), None)
