"""Drawings of REPA's figures: curves of methods over rounds or clusters, named at their ends."""

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from scipy.optimize import isotonic_regression

from clustered_fl.figures import SMALL, draw_over_seeds
from clustered_fl.figures.methods import LOOKS, MARKERS, Look, look
from clustered_fl.figures.typesetting import typeset

# Method of a curve or row, by the first word of its name.
METHODS = {"FedAvg": "fedavg", "REPA": "repa", "WD": "wd", "CFL": "cfl"}
# No method: random clusters, and k-means on what only scoring knows ("Distribution given").
REFERENCES = ("Random", "Distribution")
_GREY = "#777777"
# Distance of two names at the right border, in parts of the panel's height.
_APART = 0.1
# Characters of a quotation that fit in one inch.
_QUOTED = 15

Named = Mapping[str, Mapping[str, Any]]  # name -> what is known of it


def colour_of(name: str) -> str:
    """Colour of a method, or grey for a reference, by the first word of a curve's or row's name.

    Raises:
        KeyError: if that word has none.
    """
    word = re.match(r"\w+", name)[0]
    return _GREY if word in REFERENCES else LOOKS[METHODS[word]]["color"]


def listed(cells: Sequence[Mapping[str, Any]], columns: Named, rows: Named) -> pd.DataFrame:
    """The cells of a table that a notebook receives, one per row.

    Columns: group (title of its column), title (of its row), method (with which that begins), row,
    run, grouping, and the published numbers by name.
    """
    found = []
    for cell in cells:
        title = rows[cell["row"]]["title"]
        about = {"group": columns[cell["column"]]["title"], "title": title}
        about["method"] = title.partition(",")[0]
        about |= {key: cell[key] for key in ("row", "run", "grouping")}
        found.append(about | cell["published"])
    return pd.DataFrame(found)


def styles(names: Iterable[str]) -> dict[str, Look]:
    """How to draw one curve per name: colour by its method, dashes and marker by the variant.

    The first variant of a method has the method's own marker, every other one a marker that no
    method in the figure has.
    """
    found: dict[str, Look] = {}
    further: list[Look] = []
    own: set[str] = set()
    for name in names:
        colour = colour_of(name)
        same = sum(style["color"] == colour for style in found.values())
        found[name] = look(colour, same)
        if same:
            further.append(found[name])
        else:
            own.add(found[name]["marker"])
    others = cycle(marker for marker in MARKERS if marker not in own)
    for style in further:
        style["marker"] = next(others)
    return found


def shades(names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """How to draw curves that are a sequence: from medium to dark, with a marker of their own."""
    colours = map(to_hex, mpl.colormaps["viridis"](np.linspace(0.55, 0.05, len(names))))
    looks = zip(names, colours, cycle(MARKERS), strict=False)
    return {name: {"color": colour, "marker": marker} for name, colour, marker in looks}


def draw_curves(axis: Axes, table: pd.DataFrame, along: str, value: str, looks: Named) -> None:
    """Draw one curve per name: the mean over seeds, and a band from the least to the largest.

    Args:
        table: columns curve, seed, `along` and `value`; names without rows are left out.
        looks: name -> style, as `styles` gives it, in the order of drawing.
    """
    for name, style in looks.items():
        own = table[table["curve"] == name].groupby(along)[value]
        if len(own):
            size = {"markersize": 3.5, "linewidth": 1.4}
            draw_over_seeds(axis, own, 0.18, label=name, **style, **size)
    whole_ticks(axis)


def draw_clusters(axis: Axes, table: pd.DataFrame, looks: Named) -> None:
    """Draw the robustness of single clusters against their size, with the rank correlation.

    Args:
        table: columns curve, size and robustness.
        looks: name of a curve -> style.
    """
    for name, own in table.groupby("curve"):
        ranks = own[["size", "robustness"]].corr("spearman").iloc[0, 1]
        style = {**looks[name], "linestyle": "", "alpha": 0.6, "markersize": 4}
        label = typeset(f"{name}: rank correlation {ranks:.2f}")
        axis.plot(own["size"], own["robustness"], label=label, **style)
    axis.legend(loc="lower right")
    whole_ticks(axis)


def whole_ticks(axis: Axes) -> None:
    """A horizontal axis with whole numbers, as rounds and clients are."""
    axis.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10], integer=True))


def limits(table: pd.DataFrame) -> tuple[float, float]:
    """Limits of the vertical axis within which all curves lie from a quarter of the rounds on.

    Args:
        table: columns round and weighted, the accuracy in %.
    """
    late = table.loc[table["round"] >= table["round"].max() / 4, "weighted"]
    margin = 0.06 * (late.max() - late.min()) + 0.5
    return late.min() - margin, table["weighted"].max() + margin


def name_ends(axis: Axes) -> None:
    """Write the name of every labelled curve right of its end, in its colour, none upon another.

    Limits of the axis must be final.
    """
    lines = [line for line in axis.get_lines() if not line.get_label().startswith("_")]
    low, high = axis.get_ylim()
    places = spread([(_end(line) - low) / (high - low) for line in lines], _APART)
    for line, place in zip(lines, places, strict=True):
        text = {"color": line.get_color(), "fontsize": SMALL, "va": "center"}
        axis.text(1.02, place, line.get_label(), transform=axis.transAxes, **text)


def _end(line: Line2D) -> float:
    """The last height of a line that is known; NaN if none is."""
    heights = np.asarray(line.get_ydata(), dtype=float)
    known = heights[np.isfinite(heights)]
    return float(known[-1]) if len(known) else float("nan")


def spread(places: Sequence[float], apart: float) -> list[float]:
    """The places nearest to the given ones, in the same order, that are so far apart.

    All lie between 0 and 1, if there is room. Subtracting rank x `apart` turns the minimum distance
    into monotonicity, so this is an isotonic regression. NaN is placed at the bottom.
    """
    if not len(places):
        return []
    known = np.nan_to_num(np.asarray(places, dtype=float))
    order, steps = np.argsort(known, kind="stable"), apart * np.arange(len(known))
    level = isotonic_regression(known[order] - steps).x
    placed = np.empty(len(known))
    placed[order] = np.clip(level, 0, max(1 - steps[-1], 0)) + steps
    return placed.tolist()


def quote(figure: Figure, said: str) -> None:
    """Write above all panels what the paper says of its figure, which we cannot overlay."""
    style = {"fontsize": SMALL, "style": "italic", "color": "#555555", "x": 0.01, "ha": "left"}
    figure.suptitle(textwrap.fill(said, int(_QUOTED * figure.get_figwidth())), **style)


def draw_number(axis: Axes, place: float, value: float, error: float, look: Look) -> None:
    """Draw a published value with its standard error as an open mark in the look of a method."""
    style = {"color": look["color"], "marker": look["marker"], "markerfacecolor": "white"}
    axis.errorbar(place, value, yerr=error, markersize=6, capsize=2, zorder=4, **style)


def draw_published(axis: Axes, table: pd.DataFrame, value: str) -> None:
    """Draw one row per name: seeds small, their mean large; what is published open, with its error.

    Args:
        table: columns name, seed and `value`; if anything is published, "published" and
            "published error".
    """
    names = list(dict.fromkeys(table["name"]))
    for height, name in enumerate(names):
        own, colour = table[table["name"] == name], colour_of(name)
        dots = {"color": colour, "linestyle": ""}
        axis.plot(own[value], [height] * len(own), marker="o", markersize=3, alpha=0.5, **dots)
        axis.plot(own[value].mean(), height, marker="o", markersize=6, **dots)
        if "published" in own:
            place, error = own[["published", "published error"]].iloc[0]
            style = {"fmt": "o", "markerfacecolor": "white", "color": "#777777", "capsize": 2}
            axis.errorbar(place, height - 0.28, xerr=error, markersize=5, **style)
    axis.set_yticks(range(len(names)), names)
    axis.set_ylim(len(names) - 0.5, -0.6)


def draw_similarity(axis: Axes, values: np.ndarray, groups: np.ndarray) -> None:
    """Draw a similarity [M, M] of clients ordered by their groups [M], whose borders are marked.

    Colours span the similarities of different clients, so that small differences can be seen.
    """
    order = np.argsort(groups, kind="stable")
    apart = values[~np.eye(len(values), dtype=bool)]
    colours = {"cmap": "viridis", "vmin": apart.min(), "vmax": apart.max()}
    shown = axis.imshow(values[np.ix_(order, order)], interpolation="nearest", **colours)
    for border in np.flatnonzero(np.diff(groups[order])) + 0.5:
        axis.axhline(border, color="white", linewidth=0.8)
        axis.axvline(border, color="white", linewidth=0.8)
    axis.set(xticks=[], yticks=[])
    bar = axis.get_figure().colorbar(shown, ax=axis, shrink=0.8, pad=0.02)
    bar.ax.tick_params(labelsize=SMALL)
