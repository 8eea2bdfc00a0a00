"""The maps of the benchmark: one measure of all methods in all settings.

Tables have the columns `setting` and `method`.
"""

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import FuncNorm, Normalize
from matplotlib.figure import Figure

from clustered_fl.figures import SMALL, WIDTH, use_style
from clustered_fl.figures.typesetting import DASH, typeset

SHADES = {"agreement": "Blues", "gain": "vlag_r"}
TOLD = "k"
KEY = f"{TOLD}: the method is\ngiven the number\nof groups"
"""Mark of a method that is given the number of groups, and its explanation."""
# Settings side by side: more columns would be too narrow for numbers that a phone can show.
ACROSS = 9
# Characters of a line: heads of columns, names of rows.
_HEAD, _NAME = 13, 14
# Inches: a row with one line in its cells, with two; heads, bar and title of a map.
_ROW, _TALL, _AROUND = 0.23, 0.34, 1.65
Titles = Mapping[str, str]  # by name, in order


class Map(NamedTuple):
    """One measure of all methods in all settings.

    Attributes:
        title: what stands above it.
        measure: of `SHADES`; maps of the same measure share their colours.
        means: over seeds, methods by settings.
        spread: standard deviations over seeds, of the same shape; NaN for a single one, None for
            all.
    """

    title: str
    measure: str
    means: pd.DataFrame
    spread: pd.DataFrame | None = None


def shade(measure: str, values: np.ndarray) -> ScalarMappable:
    """The colours of a measure of `SHADES`: agreements from 0 to 1, gains to the largest.

    The colours of gains go with the square root. On a linear scale that reaches 50 points, gains of
    six would be white; on one that ends at 20, all larger ones would look alike.
    """
    norm = Normalize(0, 1)
    if measure == "gain":
        most = max(1.0, float(np.nanmax(np.abs(values), initial=0)))
        norm = FuncNorm((_root, _square), -most, most)
    return ScalarMappable(norm, mpl.colormaps[SHADES[measure]])


def _root(values: np.ndarray) -> np.ndarray:
    return np.sign(values) * np.sqrt(np.abs(values))


def _square(values: np.ndarray) -> np.ndarray:
    return np.sign(values) * np.square(values)


def written(measure: str, value: float, spread: float = float("nan")) -> str:
    """A value as its cell shows it: a dash for none, its spread over seeds in a second line.

    Gains have at most two digits, which is what fits.
    """
    if not np.isfinite(value):
        return DASH
    form = ":z.2f" if measure == "agreement" else ":+z.1f" if abs(value) < 9.95 else ":+z.0f"
    text = typeset(f"{{{form}}}".format(value))
    return f"{text}\n±{spread:.1f}" if spread > 0 else text


def ink(colour: Sequence[float]) -> str:
    """White or black, whichever has more contrast with a colour (RGB or RGBA, 0 to 1)."""
    rgb = np.asarray(colour[:3])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    # Equal contrast (WCAG 2.1) with white and with black is at a luminance of 0.18.
    return "white" if linear @ (0.2126, 0.7152, 0.0722) < 0.18 else "black"


def draw_grid(
    axis: Axes, grid: pd.DataFrame, spread: pd.DataFrame, measure: str, colours: ScalarMappable
) -> None:
    """Draw a measure [methods, settings] as coloured cells with their numbers and spreads."""
    values, spreads = grid.to_numpy(dtype=float), spread.to_numpy(dtype=float)
    shown = np.ma.masked_invalid(values)
    axis.imshow(shown, cmap=colours.cmap, norm=colours.norm, aspect="auto")
    place = {"ha": "center", "va": "center", "fontsize": SMALL, "linespacing": 1.1}
    for (row, column), value in np.ndenumerate(values):
        text = written(measure, value, spreads[row, column])
        colour = ink(colours.to_rgba(value)) if np.isfinite(value) else "black"
        axis.text(column, row, text, color=colour, **place)
    for along, count in ((axis.xaxis, len(grid.columns)), (axis.yaxis, len(grid))):
        along.set_ticks(np.arange(count) - 0.5, minor=True)
    axis.grid(which="minor", color="white", linewidth=1)
    axis.tick_params(which="both", length=0)
    axis.spines[:].set_visible(False)


def name_grid(axis: Axes, methods: Titles, clients: Titles, told: Sequence[str]) -> None:
    """Write names of methods left of a map, those `told` the number of groups marked; heads above.

    Args:
        methods: name -> title, in the order of the rows; clients: of the columns.
    """
    heads = [textwrap.fill(title, _HEAD, break_long_words=False) for title in clients.values()]
    names = [textwrap.fill(title, _NAME) for title in methods.values()]
    axis.xaxis.tick_top()
    axis.set_xticks(range(len(heads)), heads, rotation=90, fontsize=SMALL)
    axis.set_yticks(range(len(names)), names, fontsize=SMALL, linespacing=0.95)
    axis.tick_params(axis="y", pad=11)
    place: dict[str, Any] = {"transform": axis.get_yaxis_transform(), "fontsize": SMALL}
    if told:
        axis.text(-0.015, -0.8, KEY, ha="right", va="bottom", color="#555555", **place)
    for row, name in enumerate(methods):
        if name in told:
            axis.text(-0.015, row, TOLD, ha="right", va="center", fontweight="bold", **place)


def maps(
    shown: Sequence[Map], methods: Titles, clients: Titles, told: Sequence[str] = ()
) -> Figure:
    """Draw maps below each other, each with its colour bar, `ACROSS` settings at most wide.

    Args:
        methods, clients: name -> title, in order; told: methods that are told the number of groups.
    """
    parts = np.array_split(list(clients), -(-len(clients) // ACROSS))
    rows = [_cut(each, list(part)) for each in shown for part in parts]
    tall = [_TALL if row.spread.max(axis=None) > 0 else _ROW for row in rows]
    heights = [_AROUND + each * len(methods) for each in tall]
    use_style()
    size = {"figsize": (WIDTH, sum(heights)), "height_ratios": heights}
    figure, axes = plt.subplots(len(rows), 1, squeeze=False, **size)
    for axis, row in zip(axes[:, 0], rows, strict=True):
        every = [each.means.to_numpy(dtype=float) for each in shown if each.measure == row.measure]
        colours = shade(row.measure, np.concatenate(every))
        draw_grid(axis, row.means, row.spread, row.measure, colours)
        name_grid(axis, methods, {name: clients[name] for name in row.means.columns}, told)
        axis.set_title(row.title, loc="right")
        bar = figure.colorbar(colours, ax=axis, location="bottom", aspect=30, pad=0.02)
        if row.measure == "gain":
            _gain_ticks(bar.ax, colours.norm.vmax)
    return figure


def _cut(whole: Map, settings: list[str]) -> Map:
    """Some settings of a map, whose spread is NaN where there was none."""
    spread = whole.means * np.nan if whole.spread is None else whole.spread
    return whole._replace(means=whole.means[settings], spread=spread[settings])


def _gain_ticks(axis: Axes, most: float) -> None:
    """Plain numbers, few enough to be read on a scale of square roots."""
    ends = [place for place in (1, 5, 20, 50) if place <= most]
    places = [*(-place for place in reversed(ends)), 0, *ends]
    axis.set_xticks(places, [typeset(f"{place:+d}") for place in places])
    axis.minorticks_off()
