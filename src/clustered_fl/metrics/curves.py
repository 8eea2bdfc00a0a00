"""Measurements of many runs as one tidy table, and what figures and claims read from it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from clustered_fl.records import load_record, load_rounds

Folders = Mapping[str, Mapping[int | str, str]]
"""Run -> seed -> folder of its record; seeds are text after a trip through JSON."""


def measurements(folders: Folders) -> pd.DataFrame:
    """All measurements of these runs.

    Returns:
        Columns run, seed, round, scope, member, metric, value.
    """
    frames = [
        load_rounds(Path(folder)).assign(run=run, seed=int(seed))
        for run, seeds in folders.items()
        for seed, folder in seeds.items()
    ]
    return pd.concat(frames, ignore_index=True)


def records(families: Mapping[str, Folders]) -> list[dict[str, Any]]:
    """The records of all runs and seeds of these families."""
    return [
        load_record(Path(folder))
        for runs in families.values()
        for seeds in runs.values()
        for folder in seeds.values()
    ]


def metric(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    """Rows of one metric, in the order run, seed, member, round."""
    return frame[frame["metric"] == name].sort_values(["run", "seed", "member", "round"])


def at_round(frame: pd.DataFrame, name: str, round_: int) -> pd.Series:
    """Values of one metric at one round, all members."""
    return frame.loc[(frame["metric"] == name) & (frame["round"] == round_), "value"]


def final(frame: pd.DataFrame, name: str) -> pd.Series:
    """Values of one metric at the last round at which it was measured, all members."""
    rows = frame[frame["metric"] == name]
    return rows.loc[rows["round"] == rows["round"].max(), "value"]


def mean_by_round(frame: pd.DataFrame, name: str) -> pd.Series:
    """Mean over members of one metric, indexed by round."""
    return metric(frame, name).groupby("round")["value"].mean()


def running_median(frame: pd.DataFrame, rounds: int) -> pd.DataFrame:
    """Every curve with each value replaced by the median of `rounds` rounds around it.

    A curve is one metric of one member in one run and seed.
    """
    curve = ["run", "seed", "scope", "member", "metric"]
    ordered = frame.sort_values([*curve, "round"])
    smooth = ordered.groupby(curve)["value"].transform(
        lambda values: values.rolling(rounds, center=True, min_periods=1).median()
    )
    return ordered.assign(value=smooth)
