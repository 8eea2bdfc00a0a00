"""Drawings of all contenders on all grounds: the matrix, what it costs, and how each got there."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.patheffects import withStroke

from clustered_fl.figures import METHODS

# What METHODS leaves of the colour-blind safe palette, for contenders that it does not know.
OTHERS = ("#56b4e9", "#ece133", "#fbafe4")
_DASHES = ("solid", "dashed", "dotted", "dashdot")

SHADES = {
    "agreement": {"cmap": "Blues", "vmin": 0, "vmax": 1},
    "gain": {"cmap": "vlag_r", "vmin": -20, "vmax": 20, "center": 0},
}
FORMS = {"agreement": "{:.2f}", "gain": "{:+.1f}"}


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
    texts = grid.map(lambda value: _text(value, measure))
    style = {"linewidths": 1, "cbar": False, "fmt": "", "annot_kws": {"fontsize": 7}}
    shown = grid.astype(float)
    sns.heatmap(shown, annot=texts.where(shown.notna()), ax=axis, **style, **SHADES[measure])
    for row, column in zip(*np.nonzero(shown.isna().to_numpy()), strict=True):
        place = {"ha": "center", "va": "center", "color": "#888888", "fontsize": 7}
        axis.text(column + 0.5, row + 0.5, "–", **place)
    names = [contenders[name] for name in grid.index]
    axis.set_yticks(np.arange(len(names)) + 0.5, names, rotation=0, fontsize=8)
    heads = [grounds[name] for name in grid.columns]
    axis.set_xticks(np.arange(len(heads)) + 0.5, heads, rotation=40, ha="right", fontsize=8)
    axis.set(xlabel="", ylabel="")
    axis.tick_params(length=0)


def _text(value: float, measure: str) -> str:
    return FORMS[measure].format(value).replace("-", "−") if np.isfinite(value) else ""


def draw_costs(
    axis: Axes, table: pd.DataFrame, cost: str, contenders: Mapping[str, str], baseline: str
) -> None:
    """Draw what contenders bring over what they cost, both compared with the baseline.

    A dot is a contender: the mean of its gain and the geometric mean of its cost in units of the
    baseline's, over the grounds on which it trained.

    Args:
        table: of `metrics.matrix.matrix`.
        cost: column of it.
        contenders: titles by name.
        baseline: contender that costs 1.
    """
    known = styles(list(contenders))
    for name, dot in relative(table, cost, baseline).iterrows():
        place = (max(dot["cost"], 1e-3), dot["gain"])
        axis.plot(*place, "o", color=known[name]["color"], markersize=6)
        offset = {"xytext": (4, 4), "textcoords": "offset points", "fontsize": 7}
        axis.annotate(contenders[name], place, **offset, path_effects=[_HALO])
    axis.set_xscale("log")
    axis.xaxis.set_major_formatter(mpl.ticker.FormatStrFormatter("%g"))
    axis.axhline(0, color="#bbbbbb", linewidth=0.8, zorder=0)
    axis.margins(0.15)


_HALO = withStroke(linewidth=2, foreground="white")


def relative(table: pd.DataFrame, cost: str, baseline: str) -> pd.DataFrame:
    """Mean gain and relative cost of every contender: index contender, columns gain, cost."""
    base = table[table["contender"] == baseline].set_index("ground")[cost]
    share = table[cost] / table["ground"].map(base)
    logs = np.log(share.where(share > 0))
    by = table.assign(log=logs).groupby("contender", sort=False)
    return pd.DataFrame({"gain": by["gain"].mean(), "cost": np.exp(by["log"].mean()).fillna(0)})


def draw_rounds(axis: Axes, table: pd.DataFrame, contenders: Mapping[str, str]) -> None:
    """Draw after how many rounds each contender is within a point of its end.

    A small dot is a ground, the bar their median.

    Args:
        table: of `metrics.matrix.matrix`.
        contenders: titles by name, from top to bottom.
    """
    known = styles(list(contenders))
    for row, name in enumerate(contenders):
        own = table.loc[table["contender"] == name, "converged"]
        colour = known[name]["color"]
        axis.plot(own, [row] * len(own), "o", color=colour, markersize=3.5, alpha=0.7)
        axis.plot([own.median()] * 2, [row - 0.3, row + 0.3], color=colour, linewidth=2)
    axis.set_yticks(range(len(contenders)), contenders.values(), fontsize=8)
    axis.set(ylim=(len(contenders) - 0.5, -0.5), xlabel="rounds")


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
