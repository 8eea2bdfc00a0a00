"""Drawings of all contenders on all grounds: the matrix, what it costs, and how each got there."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from clustered_fl.figures import METHODS

# What METHODS leaves of the colour-blind safe palette, for contenders that it does not know.
OTHERS = ("#56b4e9", "#ece133", "#fbafe4")
_DASHES = ("solid", "dashed", "dotted", "dashdot")

# Colours, and the values at their ends; what is beyond has the last colour.
SHADES = {"agreement": ("Blues", 0.0, 1.0), "gain": ("vlag_r", -20.0, 20.0)}
FORMS = {"agreement": "{:z.2f}", "gain": "{:+z.1f}"}  # z: no minus before zero


def styles(contenders: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Colour and dashes of every contender's curve, by its name.

    Methods of the papers have their colour; others take what colours are left, and when these are
    used up, other dashes.
    """
    unknown = [name for name in contenders if name not in METHODS]
    found: dict[str, dict[str, Any]] = {}
    for name in contenders:
        place = unknown.index(name) if name in unknown else 0
        colour = METHODS.get(name, OTHERS[place % len(OTHERS)])
        turn = place // len(OTHERS) + (name in unknown)
        found[name] = {"color": colour, "linestyle": _DASHES[turn % len(_DASHES)]}
    return found


def draw_grid(
    axis: Axes,
    grid: pd.DataFrame,
    measure: str,
    contenders: Mapping[str, str],
    grounds: Mapping[str, str],
) -> None:
    """Draw one measure as coloured cells with their numbers; a dash stands for what is not there.

    Args:
        grid: contenders by grounds, as `metrics.matrix.grid` makes it.
        measure: key of `SHADES`.
        contenders, grounds: titles by name.
    """
    shade, least, most = SHADES[measure]
    values = grid.to_numpy(dtype=float)
    shown = np.ma.masked_invalid(values)
    axis.imshow(shown, cmap=mpl.colormaps[shade], vmin=least, vmax=most, aspect="auto")
    for (row, column), value in np.ndenumerate(values):
        share = np.clip((value - least) / (most - least), 0, 1)
        dark = share > 0.6 if measure == "agreement" else abs(share - 0.5) > 0.35
        ink = {"color": "white" if dark else "#222222", "fontsize": 7}
        axis.text(column, row, _text(value, measure), ha="center", va="center", **ink)
    names, heads = [contenders[n] for n in grid.index], [grounds[n] for n in grid.columns]
    axis.set_yticks(range(len(names)), names, fontsize=8)
    axis.set_xticks(range(len(heads)), heads, rotation=40, ha="right", fontsize=8)
    axis.set_xticks(np.arange(len(heads)) - 0.5, minor=True)
    axis.set_yticks(np.arange(len(names)) - 0.5, minor=True)
    axis.grid(which="minor", color="white", linewidth=1)
    axis.tick_params(which="both", length=0)


def _text(value: float, measure: str) -> str:
    return FORMS[measure].format(value).replace("-", "−") if np.isfinite(value) else "–"


def draw_strip(
    axis: Axes, table: pd.DataFrame, column: str, contenders: Mapping[str, str], log: bool = False
) -> None:
    """Draw one measure of all contenders below each other.

    A small dot is a ground, the bar their median. On a logarithmic axis there is no place for 0;
    whoever has it is marked at the margin.

    Args:
        table: with columns contender and the measure, a row per ground.
        contenders: titles by name, from top to bottom.
        log: whether the axis is logarithmic.
    """
    known = styles(list(contenders))
    for row, name in enumerate(contenders):
        own = table.loc[table["contender"] == name, column].dropna()
        seen, colour = own[own > 0] if log else own, known[name]["color"]
        axis.plot(seen, [row] * len(seen), "o", color=colour, markersize=3.5, alpha=0.7)
        if len(seen):
            axis.plot([seen.median()] * 2, [row - 0.32, row + 0.32], color=colour, linewidth=2)
        elif len(own):
            margin = {"transform": axis.get_yaxis_transform(), "va": "center", "fontsize": 7}
            axis.text(0.02, row, "0", color=colour, **margin)
    axis.set_yticks(range(len(contenders)), contenders.values(), fontsize=8)
    axis.set_ylim(len(contenders) - 0.5, -0.5)
    if log:
        _logarithmic(axis)
    axis.grid(axis="x", color="#eeeeee", zorder=0)


def _logarithmic(axis: Axes) -> None:
    """Plain numbers at round places, few enough to be read."""
    axis.set_xscale("log")
    least, most = axis.get_xlim()
    places = (1, 2, 5) if most / least < 50 else (1,)
    axis.xaxis.set_major_locator(mpl.ticker.LogLocator(subs=places))
    axis.xaxis.set_major_formatter(mpl.ticker.FormatStrFormatter("%g"))
    axis.xaxis.set_minor_formatter(mpl.ticker.NullFormatter())


def compared(table: pd.DataFrame, column: str, baseline: str) -> pd.Series:
    """A measure in units of the baseline's on the same ground, row by row; NaN without one."""
    base = table[table["contender"] == baseline].set_index("ground")[column]
    return table[column] / table["ground"].map(base)


def draw_history(
    axis: Axes, history: pd.DataFrame, measure: str, contenders: Mapping[str, str]
) -> None:
    """Draw one measure over the rounds, a curve per contender.

    Args:
        history: columns contender, round and the measure, as `metrics.matrix.over_rounds` finds.
        measure: "accuracy", "agreement" or "groups".
        contenders: titles by name.
    """
    known = styles(list(contenders))
    for name, title in contenders.items():
        own = history[history["contender"] == name].dropna(subset=[measure])
        thick = 2 if name in ("oracle", "fedavg") else 1.2
        axis.plot(own["round"], own[measure], label=title, linewidth=thick, **known[name])
    axis.set(xlabel="communication round")
