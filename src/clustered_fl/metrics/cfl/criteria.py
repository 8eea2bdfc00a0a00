"""Rounds in which CFL's criteria would split, from the norms of a run.

Source: Sattler, Müller, Samek (TNNLS 2020), eqs. (30), (31), recommendations in section V-B.
"""

import pandas as pd


def share_of_rounds(frame: pd.DataFrame, eps_1: float, eps_2: float) -> float:
    """Fraction of rounds in which both norm criteria hold, for runs without splits.

    Args:
        eps_1: as a fraction of the largest mean-update norm up to that round, because a server
            cannot know later ones; the paper's rule of thumb is a tenth.
        eps_2: as a multiple of eps_1; the paper suggests 1 to 10.
    """
    rows = frame[frame["metric"].isin(["mean_update_norm", "max_update_norm"])]
    norms = rows.pivot_table(index=["run", "seed", "round"], columns="metric", values="value")
    mean, largest = norms["mean_update_norm"], norms["max_update_norm"]
    threshold = eps_1 * mean.groupby(["run", "seed"]).cummax()
    return float(((mean < threshold) & (largest > eps_2 * threshold)).mean())
