"""Drawings of REPA's figures: curves of methods over rounds or clusters, with names at their ends."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.optimize import isotonic_regression

from clustered_fl.figures import CLUSTERS, METHODS

# By the first word of a curve's name. REPA and WD are the two that every figure compares.
COLOURS = {
    "FedAvg": METHODS["fedavg"],
    "REPA": METHODS["flt"],
    "WD": CLUSTERS[0],
    "CFL": CLUSTERS[2],
    "Distribution": CLUSTERS[2],
    "Random": CLUSTERS[7],
}
_DASHES = ("solid", (0, (4, 1.5)), (0, (1, 1.2)), "dashdot")
_MARKERS = ("o", "s", "^", "D")
# Distance of two names at the right border, in parts of the panel's height.
_APART = 0.085


def styles(names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """How to draw one curve per name: colour by its first word, dashes and marker by the variant.

    Raises:
        KeyError: if a first word has no colour.
    """
    found: dict[str, dict[str, Any]] = {}
    for name in names:
        colour = COLOURS[name.split()[0]]
        same = sum(style["color"] == colour for style in found.values()) % len(_DASHES)
        found[name] = {"color": colour, "linestyle": _DASHES[same], "marker": _MARKERS[same]}
    return found


def draw_curves(
    axis: Axes,
    table: pd.DataFrame,
    along: str,
    value: str,
    looks: Mapping[str, Mapping[str, Any]],
) -> None:
    """Draw one curve per name: the mean over seeds, and a band from the least to the largest.

    Args:
        table: columns curve, seed, `along` and `value`; names without rows are left out.
        looks: name -> style, as `styles` gives it, in the order of drawing.
    """
    for name, look in looks.items():
        own = table[table["curve"] == name].groupby(along)[value]
        if not len(own):
            continue
        means, least, most = own.mean(), own.min(), own.max()
        size = {"markersize": 3 if len(means) <= 12 else 0, "linewidth": 1.4}
        axis.plot(means.index, means, label=name, **look, **size)
        band = {"color": look["color"], "alpha": 0.18, "linewidth": 0}
        axis.fill_between(means.index, least, most, **band)


def name_ends(axis: Axes, names: Sequence[str] | None = None) -> None:
    """Write the name of every labelled curve right of its end, in its colour, none upon another.

    Args:
        axis: whose limits are final.
        names: of the curves to name; None: all.
    """
    lines = [line for line in axis.get_lines() if not line.get_label().startswith("_")]
    lines = [line for line in lines if names is None or line.get_label() in names]
    ends = [float(np.asarray(line.get_ydata(), dtype=float)[-1]) for line in lines]
    low, high = axis.get_ylim()
    places = spread([(end - low) / (high - low) for end in ends], _APART)
    for line, place in zip(lines, places, strict=True):
        text = {"color": line.get_color(), "fontsize": 7, "va": "center"}
        axis.text(1.02, place, line.get_label(), transform=axis.transAxes, **text)


def spread(places: Sequence[float], apart: float) -> list[float]:
    """The places nearest to the given ones, in the same order, that are so far apart.

    Less its rank times the distance, every place must not be below the one before: an isotonic
    regression. What has no place (NaN) stands at the bottom.
    """
    known = np.nan_to_num(np.asarray(places, dtype=float))
    order, steps = np.argsort(known, kind="stable"), apart * np.arange(len(known))
    placed = np.empty(len(known))
    if len(known):
        placed[order] = isotonic_regression(known[order] - steps).x + steps
    return placed.tolist()


def quote(figure: Figure, said: str) -> None:
    """Write above all panels what the paper says of its figure, which we cannot overlay."""
    style = {"fontsize": 8, "style": "italic", "color": "#555555", "x": 0.01, "ha": "left"}
    figure.suptitle(said, **style)


def stated(axis: Axes, value: float, text: str) -> None:
    """A dotted line at a number that the paper states, with its text above the left end."""
    axis.axhline(value, color="#777777", linewidth=0.9, linestyle=(0, (1, 2)), zorder=0)
    place = {"xytext": (2, 2), "textcoords": "offset points", "fontsize": 6.5, "color": "#777777"}
    axis.annotate(text, (0, value), xycoords=("axes fraction", "data"), **place)
