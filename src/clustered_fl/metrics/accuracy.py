"""Test accuracy as in FLT's tables: mean, errors, and variance across clients.

Source: Jamali-Rad, Abdizadeh, Singh (TNNLS 2023), Tables I to V, and their code (`flt.py`, lines
453-457): clients have equal weights, the variance is the population variance across clients, and
the "std. error" is that of one run's accuracy as a binomial of its test images. The interval over
seeds is ours; the paper does not measure variation between trainings.
"""

from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from clustered_fl.records import index
from clustered_fl.records.reading import load_record, load_rounds

CONFIDENCE = 0.95
MEASURES = ("round", "accuracy", "error", "variance")


def client_scores(folder: Path) -> pd.DataFrame:
    """Test accuracy in % by round (rows, ascending) and client (columns), without newcomers."""
    return scores_of(load_rounds(folder))


def scores_of(rounds: pd.DataFrame) -> pd.DataFrame:
    """The same of measurements (`records.measurements`)."""
    rows = rounds[(rounds["metric"] == "accuracy") & (rounds["scope"] == "client")]
    return 100 * rows.pivot_table(index="round", columns="member", values="value")


def at_last(scores: pd.DataFrame, until: float = np.inf) -> pd.Series:
    """Accuracy of every client at the last test up to round `until`; its name is that round."""
    return scores.loc[scores.index <= until].iloc[-1]


def binomial_error(accuracy: float, images: int) -> float:
    """Standard error in points of an accuracy in %, measured on `images` different images."""
    share = accuracy / 100
    return float(100 * np.sqrt(share * (1 - share) / images))


def half_width(values: pd.Series) -> float:
    """Half of the 95% t-interval of the mean over seeds; NaN for a single seed."""
    if len(values) < 2:
        return float("nan")
    quantile = stats.t.ppf((1 + CONFIDENCE) / 2, len(values) - 1)
    return float(quantile * values.std(ddof=1) / np.sqrt(len(values)))


def by_seed(runs: pd.DataFrame, share: float = 1.0) -> pd.DataFrame:
    """Accuracy of all runs and seeds in an index after a fraction of rounds (Table V).

    Columns: run, seed, round (of the test), accuracy (%, mean over clients), error (binomial, in
    points), variance (over clients, in squared points).
    """
    rows = []
    for run, seed, folder in index.each(runs):
        record = load_record(folder)
        scores = at_last(client_scores(folder), share * record["rounds"])
        mean = float(scores.mean())
        error = binomial_error(mean, record["test_rows"])
        rows.append((run, seed, int(scores.name), mean, error, float(scores.var(ddof=0))))
    return pd.DataFrame(rows, columns=["run", "seed", *MEASURES])


def across_seeds(table: pd.DataFrame) -> pd.DataFrame:
    """Means over seeds of the columns of `by_seed`, by run, with half the 95% interval."""
    by_run = table.groupby("run")
    interval = by_run["accuracy"].agg(half_width)
    return by_run[list(MEASURES)].mean().assign(seeds=by_run.size(), interval=interval)


def by_cluster(runs: pd.DataFrame) -> pd.DataFrame:
    """Final accuracy within every true cluster: run, seed, cluster, accuracy (%)."""
    parts = []
    for run, seed, folder in index.each(runs):
        truth = np.array(load_record(folder)["true_groups"])
        means = at_last(client_scores(folder)).groupby(truth).mean()
        rows = means.rename_axis("cluster").rename("accuracy").reset_index()
        parts.append(rows.assign(run=run, seed=seed))
    return pd.concat(parts, ignore_index=True)[["run", "seed", "cluster", "accuracy"]]


def over_rounds(runs: pd.DataFrame) -> pd.DataFrame:
    """Mean accuracy over clients at every test: run, seed, round, accuracy (%)."""
    parts = []
    for run, seed, folder in index.each(runs):
        means = client_scores(folder).mean(axis=1).rename("accuracy").reset_index()
        parts.append(means.assign(run=run, seed=seed))
    return pd.concat(parts, ignore_index=True)[["run", "seed", "round", "accuracy"]]


def first_round(scores: pd.DataFrame, accuracy: float) -> float:
    """First tested round with a mean over clients of at least `accuracy` %; else infinity."""
    reached = scores.index[scores.mean(axis=1) >= accuracy]
    return float(reached[0]) if len(reached) else float("inf")
