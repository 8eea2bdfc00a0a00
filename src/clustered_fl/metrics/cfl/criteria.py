"""Rounds in which CFL's criteria would split, from the norms of a run.

Source: Sattler, Müller, Samek (TNNLS 2020), eqs. (30), (31), recommendations in section V-B.
"""

import pandas as pd


def thresholds(mean: pd.Series, share: float) -> pd.Series:
    """Eps_1 in every round, a share of the largest mean-update norm until then.

    A server cannot know later norms; the paper's rule of thumb is a tenth.

    Args:
        mean: norm of the mean update, indexed by run, seed and round.
    """
    return share * mean.groupby(["run", "seed"]).cummax()


def share_of_rounds(frame: pd.DataFrame, eps_1: float, eps_2: float) -> float:
    """Fraction of rounds in which both norm criteria hold, for runs without splits.

    Args:
        eps_1: as a fraction of the largest mean-update norm up to that round (`thresholds`).
        eps_2: as a multiple of eps_1; the paper suggests 1 to 10.
    """
    rows = frame[frame["metric"].isin(["mean_update_norm", "max_update_norm"])]
    norms = rows.pivot_table(index=["run", "seed", "round"], columns="metric", values="value")
    mean, largest = norms["mean_update_norm"], norms["max_update_norm"]
    threshold = thresholds(mean, eps_1)
    return float(((mean < threshold) & (largest > eps_2 * threshold)).mean())
