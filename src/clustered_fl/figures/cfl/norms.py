"""The norms of updates in CFL's Fig. 8, with the thresholds of its criteria."""

import pandas as pd
from matplotlib.axes import Axes

from clustered_fl.figures import BAND, CLUSTERS, DASHDOT, DASHED, DOTTED, SOLID
from clustered_fl.metrics import curves
from clustered_fl.metrics.cfl import criteria

NAMES = {
    "average_update_norm": "average client",
    "max_update_norm": "largest client (31)",
    "mean_update_norm": "mean update (30)",
}
"""What is drawn, from back to front: metric -> name."""
# Dashes too, because orange and blue are not told apart in grey.
_LOOKS = {
    "average_update_norm": {"color": "#888888", "linestyle": DOTTED},
    "max_update_norm": {"color": CLUSTERS[1], "linestyle": DASHED},
    "mean_update_norm": {"color": CLUSTERS[0], "linestyle": SOLID},
}
_RATIO = 10
"""The paper's largest eps_2, as a multiple of eps_1."""


def draw_norms(axis: Axes, norms: pd.DataFrame, window: int) -> None:
    """Draw every seed's norms thin and their running medians over `window` rounds wide.

    Args:
        norms: rows of the metrics in `NAMES` of one run, as `metrics.curves.measurements` has them.
    """
    smooth = curves.running_median(norms, window)
    for metric, name in NAMES.items():
        label, colour = name, _LOOKS[metric]["color"]
        for seed in norms["seed"].unique():
            raw, median = (
                own[(own["seed"] == seed) & (own["metric"] == metric)].set_index("round")["value"]
                for own in (norms, smooth)
            )
            axis.plot(raw, color=colour, linewidth=0.4, alpha=0.4)
            axis.plot(median, label=label, linewidth=1.5, **_LOOKS[metric])
            label = ""  # one entry of the legend


def draw_thresholds(axis: Axes, norms: pd.DataFrame) -> None:
    """Draw every seed's eps_1, a tenth of the largest mean-update norm so far, and its eps_2."""
    mean = curves.metric(norms, "mean_update_norm").set_index(["run", "seed", "round"])["value"]
    label, band = "ε₁: maximum so far / 10", f"range of ε₂ (ε₁ to {_RATIO} ε₁)"
    for _, own in criteria.thresholds(mean, 0.1).groupby("seed"):
        rounds = own.index.get_level_values("round")
        line = {"color": "black", "linewidth": 0.9, "linestyle": DASHDOT, "zorder": 3}
        axis.step(rounds, own, where="post", label=label, **line)
        area = {"color": BAND, "linewidth": 0, "zorder": 0, "step": "post"}
        axis.fill_between(rounds, own, _RATIO * own, label=band, **area)
        label = band = ""
