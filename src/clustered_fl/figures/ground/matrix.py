"""Drawings of the benchmark: all methods on all kinds of clients, their costs and curves.

Tables name a kind of clients in the column `ground` and a method in the column `contender`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from clustered_fl.figures import METHODS

# What METHODS leaves of the colour-blind safe palette, for methods that it does not know.
OTHERS = ("#56b4e9", "#ece133", "#fbafe4")
_DASHES = ("solid", "dashed", "dotted", "dashdot")

# Colours, and the values at their ends; what is beyond has the last colour.
SHADES = {"agreement": ("Blues", 0.0, 1.0), "gain": ("vlag_r", -20.0, 20.0)}
FORMS = {"agreement": "{:z.2f}", "gain": "{:+z.1f}"}  # z: no minus before zero
Titles = Mapping[str, str]  # by name, in order


def styles(methods: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Colour and dashes of every method's curve, by its name.

    Methods of the papers have their colour; others take what colours are left, and when these are
    used up, other dashes.
    """
    found = {name: {"color": METHODS.get(name), "linestyle": "solid"} for name in methods}
    for place, name in enumerate(name for name in methods if name not in METHODS):
        turn, which = divmod(place, len(OTHERS))
        dashes = _DASHES[(turn + 1) % len(_DASHES)]
        found[name] = {"color": OTHERS[which], "linestyle": dashes}
    return found


def draw_grid(
    axis: Axes, grid: pd.DataFrame, measure: str, methods: Titles, clients: Titles
) -> None:
    """Draw a measure of `SHADES` as coloured cells with their numbers, a dash for a missing one."""
    shade, least, most = SHADES[measure]
    values = grid.to_numpy(dtype=float)
    shown = np.ma.masked_invalid(values)
    axis.imshow(shown, cmap=mpl.colormaps[shade], vmin=least, vmax=most, aspect="auto")
    for (row, column), value in np.ndenumerate(values):
        share = np.clip((value - least) / (most - least), 0, 1)
        dark = share > 0.6 if measure == "agreement" else abs(share - 0.5) > 0.35
        ink = {"color": "white" if dark else "#222222", "fontsize": 7}
        text = FORMS[measure].format(value).replace("-", "−") if np.isfinite(value) else "–"
        axis.text(column, row, text, ha="center", va="center", **ink)
    names, heads = [methods[n] for n in grid.index], [clients[n] for n in grid.columns]
    axis.set_yticks(range(len(names)), names, fontsize=8)
    axis.set_xticks(range(len(heads)), heads, rotation=40, ha="right", fontsize=8)
    axis.set_xticks(np.arange(len(heads)) - 0.5, minor=True)
    axis.set_yticks(np.arange(len(names)) - 0.5, minor=True)
    axis.grid(which="minor", color="white", linewidth=1)
    axis.tick_params(which="both", length=0)


def draw_strip(
    axis: Axes, table: pd.DataFrame, column: str, methods: Titles, log: bool = False
) -> None:
    """Draw one measure of all methods below each other.

    A small dot is a kind of clients, the bar their median. On a logarithmic axis there is no place
    for 0, which is written at the margin.
    """
    known = styles(list(methods))
    for row, name in enumerate(methods):
        own = table.loc[table["contender"] == name, column].dropna()
        seen, colour = own[own > 0] if log else own, known[name]["color"]
        axis.plot(seen, [row] * len(seen), "o", color=colour, markersize=3.5, alpha=0.7)
        if len(seen):
            axis.plot([seen.median()] * 2, [row - 0.32, row + 0.32], color=colour, linewidth=2)
        elif len(own):
            margin = {"transform": axis.get_yaxis_transform(), "va": "center", "fontsize": 7}
            axis.text(0.02, row, "0", color=colour, **margin)
    axis.set_yticks(range(len(methods)), methods.values(), fontsize=8)
    axis.set_ylim(len(methods) - 0.5, -0.5)
    if log:
        # Plain numbers at round places, few enough to be read.
        axis.set_xscale("log")
        least, most = axis.get_xlim()
        places = (1, 2, 5) if most / least < 50 else (1,)
        axis.xaxis.set_major_locator(mpl.ticker.LogLocator(subs=places))
        axis.xaxis.set_major_formatter(mpl.ticker.FormatStrFormatter("%g"))
        axis.xaxis.set_minor_formatter(mpl.ticker.NullFormatter())
    axis.grid(axis="x", color="#eeeeee", zorder=0)


def compared(table: pd.DataFrame, column: str, baseline: str) -> pd.Series:
    """A measure in units of the baseline's on the same clients, row by row; NaN without one."""
    base = table[table["contender"] == baseline].set_index("ground")[column]
    return table[column] / table["ground"].map(base)


def draw_history(axis: Axes, history: pd.DataFrame, measure: str, methods: Titles) -> None:
    """Draw a column of `metrics.ground.matrix.over_rounds` over the rounds, a curve per method."""
    known = styles(list(methods))
    for name, title in methods.items():
        own = history[history["contender"] == name].dropna(subset=[measure])
        thick = 2 if name in ("oracle", "fedavg") else 1.2
        axis.plot(own["round"], own[measure], label=title, linewidth=thick, **known[name])
    axis.set(xlabel="communication round")
