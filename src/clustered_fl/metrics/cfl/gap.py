"""The separation gap of many runs as one table: against samples per client, against rounds.

Source: Sattler, Müller, Samek (TNNLS 2020), eq. (44), Figs 6 and 7.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from clustered_fl.metrics.curves import measurements
from clustered_fl.records import index
from clustered_fl.records.reading import load_record

SIMILARITIES = {"update": "weight updates", "gradient": "full gradients"}


def by_round(runs: pd.DataFrame, scores: Sequence[str] = ("gap", "correct")) -> pd.DataFrame:
    """Scores of all clients after every round of runs with one group, such as federated averaging.

    Columns: samples (per client), seed, round, similarity ("update" or "gradient") and the scores,
    which are those of `methods.groups.scores`.
    """
    samples = {
        run: load_record(folder)["config"]["federation"]["samples"]
        for run, _, folder in index.each(runs)
    }
    rows = measurements(runs).query("round > 0")
    rows[["number", "similarity"]] = rows["metric"].str.extract(rf"^({'|'.join(scores)})_(\w+)$")
    rows = rows.dropna(subset="number").assign(samples=rows["run"].map(samples))
    keys = ["samples", "seed", "round", "similarity"]
    table = rows.pivot_table(index=keys, columns="number", values="value").reset_index()
    return table.rename_axis(columns=None)[[*keys, *scores]]


def at_last_gradient(gaps: pd.DataFrame) -> pd.DataFrame:
    """The rows of `by_round` at the last round at which full gradients were measured.

    Runs of different lengths are compared at their last common round, so that only the samples
    differ. Without a common round, each run is taken at its own last round.
    """
    gradient = gaps[gaps["similarity"] == "gradient"]
    measured = gradient.groupby(["samples", "seed"])["round"].agg(set)
    shared = set.intersection(*measured)
    last = measured.map(lambda rounds: max(shared or rounds)).rename("last")
    joined = gaps.merge(last.reset_index(), on=["samples", "seed"])
    return joined[joined["round"] == joined["last"]].drop(columns="last")


def first_positive(gaps: pd.DataFrame, along: str) -> pd.Series:
    """Smallest value of `along` with a positive mean gap over seeds, by similarity."""
    means = gaps.groupby(["similarity", along])["gap"].mean()
    return means[means > 0].reset_index().groupby("similarity")[along].min()


def delay(gaps: pd.DataFrame, along: str) -> float:
    """Delay of the first positive gap of updates after that of gradients.

    Infinite if that of updates is never positive, 0 if neither is. Minus infinite if only that of
    updates is ever positive.
    """
    firsts = first_positive(gaps, along)
    update, gradient = (float(firsts.get(name, np.inf)) for name in SIMILARITIES)
    return 0.0 if update == gradient else update - gradient


def certificates(frame: pd.DataFrame) -> dict[str, int]:
    """How often a positive gap certified a bipartition, and how often correctly (Corollary 1).

    positive: groups and rounds with g > 0; correct: those of them with a correct bipartition;
    uncertified: correct bipartitions at g <= 0, which the corollary leaves open.
    """
    rows = frame[frame["metric"].isin(["gap_update", "correct_update"])]
    keys = ["run", "seed", "round", "member"]
    table = rows.pivot_table(index=keys, columns="metric", values="value").dropna()
    positive, correct = table["gap_update"] > 0, table["correct_update"] == 1
    found = {"positive": positive, "correct": positive & correct}
    found["uncertified"] = correct & ~positive
    return {name: int(each.sum()) for name, each in found.items()}
