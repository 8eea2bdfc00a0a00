"""Measurements of many runs as one tidy table, and selections from it."""

from pathlib import Path

import pandas as pd

from clustered_fl.errors import InputError
from clustered_fl.records import index
from clustered_fl.records.reading import load_rounds


def measurements(records: pd.DataFrame) -> pd.DataFrame:
    """All measurements of the runs in an index: run, seed, round, scope, member, metric, value.

    Raises: InputError if there are no runs.
    """
    frames = [measured(path, run, seed) for run, seed, path in index.each(records)]
    if not frames:
        raise InputError("there are no runs to measure; none was computed at this scale")
    return pd.concat(frames, ignore_index=True)


def measured(folder: Path, run: str = "", seed: int = 0) -> pd.DataFrame:
    """The measurements of one run, in the columns of `measurements`."""
    return load_rounds(folder).assign(run=run, seed=seed)


def metric(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    """Rows of one metric, in the order run, seed, member, round."""
    return frame[frame["metric"] == name].sort_values(["run", "seed", "member", "round"])


def at_round(frame: pd.DataFrame, name: str, round_: int) -> pd.Series:
    """Values of one metric at one round, all members."""
    return frame.loc[(frame["metric"] == name) & (frame["round"] == round_), "value"]


def final(frame: pd.DataFrame, name: str) -> pd.Series:
    """Values of one metric at the last round at which it was measured, all members."""
    return at_round(frame, name, frame.loc[frame["metric"] == name, "round"].max())


def mean_by_round(frame: pd.DataFrame, name: str) -> pd.Series:
    """Mean over members of one metric, indexed by round."""
    return metric(frame, name).groupby("round")["value"].mean()


def running_median(frame: pd.DataFrame, rounds: int) -> pd.DataFrame:
    """Running median of every member's curve over a window of `rounds` rounds."""
    curve = ["run", "seed", "scope", "member", "metric"]
    ordered = frame.sort_values([*curve, "round"])
    smooth = ordered.groupby(curve)["value"].transform(
        lambda values: values.rolling(rounds, center=True, min_periods=1).median()
    )
    return ordered.assign(value=smooth)
