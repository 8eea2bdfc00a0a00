"""Rows of choices, grouped by question, with one value each: the effect of a setting (REPA)."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.transforms import blended_transform_factory

from clustered_fl.figures import SMALL, WIDTH, use_style
from clustered_fl.figures.repa.profiles import colour_of

Rows = Sequence[tuple[str, str]]
"""Question and choice, from top to bottom; the first choice of a question is the usual one."""

# Inches of one line of text, and of a panel's ticks and label.
_LINE, _MARGIN = 0.17, 0.75
_KEY = "#444444"


def heights(rows: Rows) -> dict[tuple[str, str], float]:
    """Heights of rows, from 0 downwards: (question, choice) -> height; (question, ""): heading."""
    found: dict[tuple[str, str], float] = {}
    last = -1.0
    for question, choice in rows:
        if (question, "") not in found:
            last += 1.4 if found else 1.0
            found[question, ""] = last
        last += 1
        found[question, choice] = last
    return found


def panels(blocks: Sequence[Rows]) -> tuple[Figure, np.ndarray]:
    """A styled figure and its axes [blocks, 3], each block as high as its rows need."""
    use_style()
    high = [_LINE * max(heights(rows).values()) + _MARGIN for rows in blocks]
    size = {"figsize": (WIDTH, sum(high)), "height_ratios": high}
    return plt.subplots(len(blocks), 3, squeeze=False, **size)


def draw(axis: Axes, table: pd.DataFrame, rows: Rows, value: str, filled: bool = True) -> None:
    """Draw the mean over seeds of every row, a bar from the lowest seed to the highest, and a line.

    Args:
        table: columns question, choice, seed and `value`; what is NaN is left out.
        filled: whether points are filled; if so, a line marks each question's usual choice.
    """
    places, usual = heights(rows), dict(reversed(rows))
    means = table.groupby(["question", "choice"])[value].agg(["mean", "min", "max"]).dropna()
    for question, choice in (row for row in rows if row in means.index):
        mean, least, most = means.loc[(question, choice)]
        # The colour of the first method that the question names.
        method = next((name for name in ("REPA", "WD", "FedAvg") if name in question), "Random")
        height, colour = places[question, choice], colour_of(method)
        axis.plot([least, most], [height] * 2, color=colour, linewidth=3, alpha=0.3)
        face = colour if filled else "white"
        axis.plot(mean, height, marker="o", markersize=5, color=colour, markerfacecolor=face)
        if filled and usual[question] == choice:
            own = [places[row] for row in rows if row[0] == question]
            span = [min(own) - 0.4, max(own) + 0.4]
            axis.plot([mean] * 2, span, color="#999999", linewidth=0.9, zorder=0)
    axis.set(yticks=[], ylim=(max(places.values()) + 0.7, -0.6))
    axis.spines["left"].set_visible(False)
    axis.patch.set_visible(False)  # or it would hide what `name_rows` writes across the panels
    axis.grid(axis="x", color="#eeeeee")
    axis.locator_params(axis="x", nbins=2)
    axis.tick_params(labelsize=SMALL)
    axis.margins(x=0.12)


def legend(figure: Figure) -> None:
    """Explain above all panels what `draw` has drawn."""
    mark = {"color": _KEY, "marker": "o", "markersize": 5, "linestyle": "none"}
    handles = [
        Line2D([], [], label="mean over seeds (accuracy: weighted by images)", **mark),
        Line2D([], [], label="with equal weight per client", markerfacecolor="white", **mark),
        Line2D([], [], label="range over seeds", color=_KEY, linewidth=3, alpha=0.3),
        Line2D([], [], label="mean of the block's first row", color="#999999", linewidth=0.9),
    ]
    figure.legend(handles=handles, loc="outside upper left", fontsize=SMALL)


def name_rows(axis: Axes, rows: Rows) -> None:
    """Write choices left of a panel that `draw` has drawn, and questions above their choices.

    A question runs from the left edge of the figure across the panels, where no point is.
    """
    edge = blended_transform_factory(axis.get_figure().transFigure, axis.transData)
    style = {"va": "center", "fontsize": SMALL}
    for (question, choice), height in heights(rows).items():
        if choice:
            place = {"transform": axis.get_yaxis_transform(), "ha": "right"}
            axis.text(-0.1, height, choice, **place, **style)
        else:
            place = {"transform": edge, "fontweight": "bold"}
            axis.text(0.01, height, question, **place, **style).set_in_layout(False)
