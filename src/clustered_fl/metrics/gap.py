"""The separation gap of many runs as one table: against samples per client, against rounds.

Source: Sattler, Müller, Samek, "Clustered Federated Learning" (TNNLS 2020), eq. (44), Figs 6 and 7.
"""

from pathlib import Path

import pandas as pd

from clustered_fl.metrics.curves import Folders, measurements
from clustered_fl.records import load_record

SIMILARITIES = {"update": "weight updates", "gradient": "full gradients"}


def by_round(folders: Folders) -> pd.DataFrame:
    """Gap of the whole federation after every round from the first on.

    Args:
        folders: of runs with one group, such as federated averaging.

    Returns:
        Columns samples (per client), seed, round, similarity ("update" or "gradient"), gap.
    """
    frame = measurements(folders)
    samples = {
        run: load_record(Path(folder))["config"]["federation"]["samples"]
        for run, seeds in folders.items()
        for folder in seeds.values()
    }
    names = {f"gap_{name}": name for name in SIMILARITIES}
    rows = frame[frame["metric"].isin(names) & (frame["round"] > 0)]
    rows = rows.assign(similarity=rows["metric"].map(names), samples=rows["run"].map(samples))
    rows = rows.rename(columns={"value": "gap"}).sort_values(["samples", "seed", "round"])
    return rows[["samples", "seed", "round", "similarity", "gap"]].reset_index(drop=True)


def at_last_gradient(gaps: pd.DataFrame) -> pd.DataFrame:
    """The rows of `by_round` at the last round at which full gradients were measured.

    Runs of several lengths are cut at one round, the last that all of them measured, so that a
    curve over samples changes nothing but the samples; where they share no round, each at its own
    last.
    """
    gradient = gaps[gaps["similarity"] == "gradient"]
    measured = gradient.groupby(["samples", "seed"])["round"].agg(set)
    shared = set.intersection(*measured)
    last = measured.map(lambda rounds: max(shared or rounds)).rename("last")
    joined = gaps.merge(last.reset_index(), on=["samples", "seed"])
    return joined[joined["round"] == joined["last"]].drop(columns="last")


def first_positive(gaps: pd.DataFrame, along: str) -> pd.Series:
    """Smallest value of the column `along` at which the mean gap over seeds is positive.

    Returns:
        Indexed by similarity; a similarity whose gap is never positive is absent.
    """
    means = gaps.groupby(["similarity", along])["gap"].mean()
    return means[means > 0].reset_index().groupby("similarity")[along].min()


def certificates(frame: pd.DataFrame) -> dict[str, int]:
    """How often a positive gap certified a bipartition, and whether it was right (Corollary 1).

    Args:
        frame: measurements of any runs; every group and round counts once.

    Returns:
        positive: groups and rounds with g > 0; correct: those of them with a correct bipartition;
        uncertified: correct bipartitions at g <= 0, which the corollary leaves open.
    """
    rows = frame[frame["metric"].isin(["gap_update", "correct_update"])]
    keys = ["run", "seed", "round", "member"]
    table = rows.pivot_table(index=keys, columns="metric", values="value").dropna()
    positive, correct = table["gap_update"] > 0, table["correct_update"] == 1
    return {
        "positive": int(positive.sum()),
        "correct": int((positive & correct).sum()),
        "uncertified": int((~positive & correct).sum()),
    }
