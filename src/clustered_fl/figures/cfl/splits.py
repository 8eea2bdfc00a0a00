"""Vertical axes of CFL's Figs 9 and 10, with what its text says of them as lines."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes

from clustered_fl.figures import stated

STATED = {
    "accuracy": {0.2: "paper: federated averaging", 0.6: "paper: after the last split"},
    "perplexity": {42: "paper: federated averaging", 36: "paper: all clients are below"},
}
"""Metric -> stated value -> of what (TNNLS section V-C)."""
# In the order of AG News' labels.
_TOPICS = ("World", "Sports", "Business", "Sci/Tech")


def cluster_names(dataset: str) -> tuple[Sequence[str], list[str]]:
    """Short names of four true clusters, for groups of them, and their names in a legend."""
    if dataset == "ag_news":
        return _TOPICS, list(_TOPICS)
    short = ("1", "2", "3", "4")
    return short, [f"cluster {name}" for name in short]


def draw_stated(axis: Axes, metric: str) -> None:
    """Draw dotted lines at the stated values, and extend the axis to them."""
    for value, text in STATED[metric].items():
        lower = value == min(STATED[metric])
        stated(axis, value, text, below=lower, left=lower and metric == "perplexity")
    low, high = axis.get_ylim()
    axis.set_ylim(min(low, 0.9 * min(STATED[metric])), max(high, 1.1 * max(STATED[metric])))


def show_settled(axis: Axes, scores: pd.DataFrame, splits: Sequence[int]) -> None:
    """Limit the axis to the scores from halfway to the first split on, as they start far above.

    Args:
        scores: columns round and value.
        splits: rounds of splits, ascending.
    """
    settled = scores.loc[scores["round"] >= (splits[0] / 2 if splits else 0), "value"]
    axis.set_ylim(0.95 * settled.min(), 1.05 * settled.max())
