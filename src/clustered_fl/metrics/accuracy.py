"""Test accuracy as FLT's tables print it: mean, errors, and variance over the clients.

Source: Jamali-Rad, Abdizadeh, Singh (TNNLS 2022), Tables I to V, and the authors' public code for
what the text leaves open: every client counts alike (`flt.py`, lines 453-457), the variance is the
population variance over clients in squared points, and the "std. error" is that of one run's
accuracy as a binomial of its test images. What two trainings differ by is in none of them, so the
interval over seeds is ours.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from clustered_fl.metrics.curves import Folders
from clustered_fl.records import load_record, load_rounds

Families = Mapping[str, Folders]
"""Entry of the ledger -> run -> seed -> folder, as a notebook receives it."""

CONFIDENCE = 0.95
MEASURES = ("round", "accuracy", "error", "variance")


def client_scores(folder: Path) -> pd.DataFrame:
    """Test accuracy in % by round (rows, ascending) and client (columns), newcomers left out."""
    rounds = load_rounds(folder)
    rows = rounds[(rounds["metric"] == "accuracy") & (rounds["scope"] == "client")]
    return 100 * rows.pivot_table(index="round", columns="member", values="value")


def at_last(scores: pd.DataFrame, until: float = np.inf) -> pd.Series:
    """Accuracy of every client at the last test not after round `until`; its name is that round.

    Args:
        scores: as `client_scores` reads them; the first is that of round 0.
    """
    return scores.loc[scores.index <= until].iloc[-1]


def binomial_error(accuracy: float, images: int) -> float:
    """Standard error in points of an accuracy in %, measured on so many different images."""
    share = accuracy / 100
    return float(100 * np.sqrt(share * (1 - share) / images))


def half_width(values: pd.Series) -> float:
    """Half of the 95 % t-interval of the mean over seeds; NaN for a single seed."""
    if len(values) < 2:
        return float("nan")
    quantile = stats.t.ppf((1 + CONFIDENCE) / 2, len(values) - 1)
    return float(quantile * values.std(ddof=1) / np.sqrt(len(values)))


def by_seed(families: Families, share: float = 1.0) -> pd.DataFrame:
    """Accuracy of all runs and seeds.

    Args:
        families: of runs.
        share: of a run's rounds after which it is read, at the last test until then (Table V).
    Returns:
        Columns run, seed, round (of the test), accuracy (%, mean over clients), error (binomial,
        in points), variance (over clients, in squared points).
    """
    rows = [
        {"run": run, "seed": seed} | _measures(folder, share)
        for run, seed, folder in _each(families)
    ]
    return pd.DataFrame(rows, columns=["run", "seed", *MEASURES])


def _each(families: Families) -> Iterator[tuple[str, int, Path]]:
    for runs in families.values():
        for run, seeds in runs.items():
            yield from ((run, int(seed), Path(folder)) for seed, folder in seeds.items())


def _measures(folder: Path, share: float) -> dict[str, float]:
    record = load_record(folder)
    scores = at_last(client_scores(folder), share * record["rounds"])
    mean = float(scores.mean())
    error = binomial_error(mean, record["test_rows"])
    values = (int(scores.name), mean, error, float(scores.var(ddof=0)))
    return dict(zip(MEASURES, values, strict=True))


def across_seeds(table: pd.DataFrame) -> pd.DataFrame:
    """Means over seeds of what `by_seed` found.

    Returns:
        Indexed by run; the measures, seeds (their number) and interval (half of the 95 %
        t-interval of the mean accuracy).
    """
    by_run = table.groupby("run")
    interval = by_run["accuracy"].agg(half_width)
    return by_run[list(MEASURES)].mean().assign(seeds=by_run.size(), interval=interval)


def by_cluster(families: Families) -> pd.DataFrame:
    """Accuracy at the end within every true cluster: run, seed, cluster, accuracy (%)."""
    parts = []
    for run, seed, folder in _each(families):
        truth = np.array(load_record(folder)["true_groups"])
        means = at_last(client_scores(folder)).groupby(truth).mean()
        rows = means.rename_axis("cluster").rename("accuracy").reset_index()
        parts.append(rows.assign(run=run, seed=seed))
    return pd.concat(parts, ignore_index=True)[["run", "seed", "cluster", "accuracy"]]


def over_rounds(families: Families) -> pd.DataFrame:
    """Mean accuracy over clients at every test: run, seed, round, accuracy (%)."""
    parts = [
        client_scores(folder)
        .mean(axis=1)
        .rename("accuracy")
        .reset_index()
        .assign(run=run, seed=seed)
        for run, seed, folder in _each(families)
    ]
    return pd.concat(parts, ignore_index=True)[["run", "seed", "round", "accuracy"]]


def first_round(scores: pd.DataFrame, accuracy: float) -> float:
    """First tested round at which the mean over clients is at least so many %; else infinity."""
    reached = scores.index[scores.mean(axis=1) >= accuracy]
    return float(reached[0]) if len(reached) else float("inf")
