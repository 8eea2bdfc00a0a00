"""Accuracy after several budgets of rounds, to show which conclusions depend on the budget.

A single test is noisy: from one to the next the mean over forty clients changes by up to two points
on CIFAR-10. The accuracy of a budget is the mean over the last tests until then.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from clustered_fl.metrics import accuracy
from clustered_fl.metrics.ground.traffic import Cell
from clustered_fl.records import index

BUDGETS = (60, 120, 240)
"""Rounds."""
TESTS = 5
"""Tests that are averaged."""


def at_budget(scores: pd.DataFrame, rounds: float = np.inf) -> pd.Series:
    """Accuracy of every client in %, the mean over the last tests not after round `rounds`.

    Args:
        scores: by tested round (rows, ascending) and client (columns); round 0 is before training
            and never counts.
    """
    trained = scores.loc[(scores.index > 0) & (scores.index <= rounds)]
    return trained.tail(TESTS).mean()


def budgets_of(scores: pd.DataFrame) -> list[int]:
    """The budgets that a run has had; its end if that was before the first of them."""
    end = int(scores.index[-1])
    within = [budget for budget in BUDGETS if budget <= end]
    return within or [end]


def by_budget(cells: Sequence[Cell], records: pd.DataFrame, baseline: str) -> pd.DataFrame:
    """Accuracy of computed cells after every budget, means over seeds.

    Columns: setting (the table's column), method (its row), budget (rounds), accuracy (%), gain
    over the row `baseline` of the same column after as many rounds (points, for the seeds of both),
    seeds (of the accuracy).
    """
    rows = []
    for cell in cells:
        for _, seed, folder in index.each(index.chosen(records, "run", cell["run"])):
            scores = accuracy.client_scores(folder)
            for budget in budgets_of(scores):
                mean = float(at_budget(scores, budget).mean())
                rows.append((cell["column"], cell["row"], budget, seed, mean))
    keys, same = ["setting", "method", "budget"], ["setting", "budget", "seed"]
    table = pd.DataFrame(rows, columns=[*keys, "seed", "accuracy"])
    base = table[table["method"] == baseline].set_index(same)["accuracy"]
    gain = table["accuracy"] - base.reindex(pd.MultiIndex.from_frame(table[same])).to_numpy()
    of_gain, of_accuracy = ("gain", "mean"), ("accuracy", "mean")
    grouped = table.assign(gain=gain).groupby(keys, sort=False)
    means = grouped.agg(accuracy=of_accuracy, gain=of_gain, seeds=("accuracy", "size"))
    return means.reset_index()
