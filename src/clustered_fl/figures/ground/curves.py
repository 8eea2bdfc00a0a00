"""Curves of all methods in one setting of the benchmark: a panel per method.

Curves of methods that find the same groups coincide, so that no colours would tell them apart in
one panel.
"""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from clustered_fl.figures import HALO, SMALL, WIDTH, use_style
from clustered_fl.figures.methods import Look, looks
from clustered_fl.metrics.ground.budgets import at_budget

REFERENCES = ("fedavg", "oracle")
"""Methods that every panel shows, and that have none of their own."""
GREY = "#cccccc"
WORDS = {
    "agreement": "agreement with the true groups (0 to 1)",
    "groups": "number of groups (logarithmic)",
}
# Inches: of a pair of panels, of the title and legend above all, of the note below.
_PANEL, _ABOVE, _BELOW = 1.25, 0.9, 0.65
Titles = Mapping[str, str]  # by name, in order


def draw_methods(history: pd.DataFrame, measure: str, methods: Titles, title: str) -> Figure:
    """Draw two columns of methods, each with its accuracy above and its groups below.

    Args:
        history: as `metrics.ground.matrix.over_rounds` makes it, of all methods, with one setting.
        measure: of the groups, "agreement" or "groups".
        methods: name -> title, in order.
        title: of the setting.
    """
    own = [name for name in methods if name not in REFERENCES] or list(methods)
    rows = -(-len(own) // 2)
    use_style()
    ratios = {"height_ratios": [3, 1] * rows}
    size = {"figsize": (WIDTH, _PANEL * rows + _ABOVE + _BELOW), "sharex": True}
    figure, axes = plt.subplots(2 * rows, 2, sharey="row", squeeze=False, **ratios, **size)
    known, limits = looks(methods), _limits(history)
    for place, name in enumerate(own):
        row, column = divmod(place, 2)
        upper, lower = axes[2 * row : 2 * row + 2, column]
        draw_accuracy(upper, history, name, known)
        upper.set_title(methods[name], loc="left", fontsize=SMALL + 0.4, pad=3)
        upper.set_ylim(limits)
        upper.tick_params(bottom=False)
        draw_groups(lower, history, name, measure, known[name])
    _finish(axes, history, measure, len(own))
    for axis in axes[:, 1][2 * (len(own) // 2) :] if len(own) % 2 else ():
        axis.set_visible(False)
    handles = [_handle(known[name], methods[name]) for name in REFERENCES if name in methods]
    handles.append(Line2D([], [], color=GREY, linewidth=1, label="other methods"))
    about = f"{title}\nabove: mean test accuracy (%)\nbelow: {WORDS[measure]}"
    place = {"loc": "outside upper center", "ncols": len(handles)}
    figure.legend(handles=handles, title=about, handlelength=1.8, columnspacing=1.2, **place)
    figure.get_layout_engine().set(h_pad=0.02, hspace=0)
    return figure


def tested(history: pd.DataFrame, name: str) -> pd.Series:
    """Accuracy of a method by round, at the tests after the first round.

    That of untrained models would hide the differences between trained ones.
    """
    own = history[(history["method"] == name) & (history["round"] > 0)]
    return own.dropna(subset=["accuracy"]).set_index("round")["accuracy"]


def draw_accuracy(axis: Axes, history: pd.DataFrame, name: str, known: Mapping[str, Look]) -> None:
    """Draw a method's curve wide, the references thin upon it, all others grey, and its accuracy.

    A band spans the seeds of the method. The accuracy is the mean of the last tests, as in the
    matrix (`metrics.ground.budgets`).

    A reference that coincides with the curve is visible as a thin line inside it.
    """
    for other in known:
        if other not in (name, *REFERENCES):
            axis.plot(tested(history, other), color=GREY, linewidth=0.7, zorder=1)
    seen, colour = tested(history, name), known[name]["color"]
    own = history[(history["method"] == name) & history["round"].isin(seen.index)]
    band = {"color": colour, "alpha": 0.25, "linewidth": 0, "zorder": 1.5}
    axis.fill_between(own["round"], own["least"], own["most"], **band)
    axis.plot(seen, color=colour, linewidth=2.3, zorder=2, solid_capstyle="butt")
    for other in REFERENCES:
        if other in known and other != name:
            axis.plot(tested(history, other), color=known[other]["color"], linewidth=0.9, zorder=3)
    if len(seen):
        style = {"fontsize": SMALL, "color": colour, "path_effects": [HALO], "zorder": 4}
        place = seen.index[-1], free_height([tested(history, each) for each in known])
        told = f"{at_budget(seen.to_frame()).item():.1f}%"
        axis.text(*place, told, ha="right", va="center", **style)


def free_height(curves: Sequence[pd.Series]) -> float:
    """Middle of the widest gap between the ends of curves, where a text hides least."""
    ends = sorted(float(curve.iloc[-1]) for curve in curves if len(curve))
    starts = min(float(curve.min()) for curve in curves if len(curve))
    # Below the lowest end there is room down to where the lowest curve starts.
    heights = [min(starts, ends[0]), *ends]
    widest = int(np.argmax(np.diff(heights)))
    return (heights[widest] + heights[widest + 1]) / 2


def draw_groups(axis: Axes, history: pd.DataFrame, name: str, measure: str, look: Look) -> None:
    """Draw the agreement or the number of groups of a method over the rounds, as a filled curve."""
    own = history[history["method"] == name].dropna(subset=[measure])
    axis.fill_between(own["round"], own[measure], color=look["color"], alpha=0.3, linewidth=0)
    axis.plot(own["round"], own[measure], color=look["color"], linewidth=1.2)


def _limits(history: pd.DataFrame) -> tuple[float, float]:
    """Of the vertical axes: all accuracies after round 0, with a margin."""
    seen = history.loc[history["round"] > 0, "accuracy"].dropna()
    margin = 0.05 * float(seen.max() - seen.min()) + 0.5
    return float(seen.min()) - margin, float(seen.max()) + margin


def _finish(axes: np.ndarray, history: pd.DataFrame, measure: str, count: int) -> None:
    """Limits of the lower panels, and names of the axes where there is room: left and below."""
    for lower in axes[1::2].flat:
        if measure == "agreement":
            least = min(0.0, float(history["agreement"].min()))  # worse than random is below 0
            lower.set(ylim=(least - 0.08, 1.15), yticks=[0, 1])
        else:
            most = int(history["groups"].max())
            ticks = [1, 10 if most >= 20 else most]  # there is room for two
            lower.set(yscale="log", ylim=(0.8, 1.6 * most), yticks=ticks, yticklabels=ticks)
            lower.minorticks_off()
    for column in (0, 1):
        last = axes[2 * ((count + 1 - column) // 2) - 1, column]
        last.set_xlabel("communication round")
        last.tick_params(labelbottom=True)


def _handle(look: Look, title: str) -> Line2D:
    return Line2D([], [], color=look["color"], linewidth=1.2, label=title)
