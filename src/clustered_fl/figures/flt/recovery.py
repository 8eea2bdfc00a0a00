"""A map of settings: which of them find the true groups, and how they fail (FLT, Algorithm 2)."""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Patch, Rectangle

from clustered_fl.figures.methods import LOOKS

# Centres per client that the paper prints; the code takes the number of a client's labels.
PRINTED_K, GAMMA = 5, 1.0
WORDS = {"matching": "matching (code)", "minimum": "smallest (paper)"}
SIZES = ("k = labels of a client (code)", f"k = {PRINTED_K} (paper)")
FRAMES = {"code": "black", "paper": LOOKS["flt"]["color"]}
_FRAME = {"fill": False, "linewidth": 1.4}
NAMES = {"code": "the code's k, distance and γ", "paper": "the paper's k, distance and γ"}
KEY = """large: mean agreement (adjusted Rand index)
small: trials that found exactly the true
clusters · mean number of components"""
# Room for row labels, between blocks of columns, and for the heading of a block of rows, in cells.
LABELS, GAP, HEADING, HEADS = 4.1, 0.25, 0.75, 1.9

Rows = Sequence[Sequence[str]]
"""Of each row: the block it belongs to, its label, the name of its grouping."""


def size(rows: Rows, gammas: int) -> tuple[float, float]:
    """Width and height of the map in inches."""
    cells = LABELS + 4 * gammas + 3 * GAP
    height = HEADS + len(rows) + HEADING * len({block for block, *_ in rows})
    return 0.6 * cells, 0.34 * height


def draw_map(axis: Axes, table: pd.DataFrame, rows: Rows) -> None:
    """Draw one coloured cell per grouping and setting, with its numbers, on a plain canvas.

    Args:
        table: as `metrics.recovery.over_seeds` finds it, without index.
        rows: from top to bottom; a grouping without numbers stays blank.
    """
    across = _columns(sorted(set(table["gamma"])))
    down, headings = _lines(rows)
    block_of = {grouping: block for block, _, grouping in rows}
    own = table[table["grouping"].isin(block_of)]
    smallest = own.groupby(own["grouping"].map(block_of))["k"].min()
    for cell in own.itertuples():
        place = across[cell.k == PRINTED_K, cell.distance, cell.gamma], down[cell.grouping]
        _draw_cell(axis, place, cell)
        coded = cell.distance == "matching" and cell.k == smallest[block_of[cell.grouping]]
        printed = cell.distance == "minimum" and cell.k == PRINTED_K
        if cell.gamma == GAMMA and (coded or printed):
            frame = {"edgecolor": FRAMES["code" if coded else "paper"], "zorder": 3, **_FRAME}
            axis.add_patch(Rectangle([edge + 0.03 for edge in place], 0.94, 0.94, **frame))
    for (_, label, _), height in zip(rows, down.values(), strict=True):
        axis.text(-0.12, height + 0.5, label, ha="right", va="center", fontsize=8)
    for heading, height in headings.items():
        axis.text(-LABELS, height + 0.45, heading, va="center", fontsize=8.5, fontweight="bold")
    _draw_heads(axis, across)
    axis.text(-LABELS, -HEADS + 0.25, KEY, va="top", fontsize=6.5, color="#555555")
    end = max(across.values()) + 1
    axis.set(xlim=(-LABELS, end + 0.1), ylim=(max(down.values(), default=0) + 1.1, -HEADS))
    axis.axis("off")


def _columns(gammas: list[float]) -> dict[tuple[bool, str, float], float]:
    """Left edge of the column of (k is the printed one, distance, gamma)."""
    order = list(product((False, True), WORDS, gammas))
    return {key: n + GAP * (n // len(gammas)) for n, key in enumerate(order)}


def _lines(rows: Rows) -> tuple[dict[str, float], dict[str, float]]:
    """Upper edge of the row of each grouping, and of the heading of each block."""
    down: dict[str, float] = {}
    headings: dict[str, float] = {}
    for above, (block, _, grouping) in enumerate(rows):
        headings.setdefault(block, above + HEADING * len(headings))
        down[grouping] = above + HEADING * len(headings)
    return down, headings


def _draw_cell(axis: Axes, place: tuple[float, float], cell: Any) -> None:
    """A cell coloured by the mean agreement; below it exact findings and mean components."""
    share = min(max(cell.ari, 0.0), 1.0)
    style = {"facecolor": mpl.colormaps["Blues"](share), "edgecolor": "white", "linewidth": 1.2}
    axis.add_patch(Rectangle(place, 1, 1, **style))
    ink, (x, y) = "white" if share > 0.6 else "#222222", place
    centred = {"ha": "center", "va": "center", "color": ink}
    mean = f"{cell.ari:z.2f}".replace("-", "−")
    axis.text(x + 0.5, y + 0.34, mean, fontsize=7.5, **centred)
    below = f"{cell.exact}/{cell.trials} · {cell.components:.3g}"
    axis.text(x + 0.5, y + 0.74, below, fontsize=5, **centred)


def _draw_heads(axis: Axes, across: Mapping[tuple[bool, str, float], float]) -> None:
    """Three lines of column heads: k, distance, gamma."""
    for (_, _, gamma), left in across.items():
        axis.text(left + 0.5, -0.22, f"γ = {gamma:g}", ha="center", va="center", fontsize=7.5)
    for printed, text in enumerate(SIZES):
        own = {key[1:]: left for key, left in across.items() if key[0] == printed}
        _draw_span(axis, list(own.values()), text, 1.35)
        for distance, word in WORDS.items():
            lefts = [left for (each, _), left in own.items() if each == distance]
            _draw_span(axis, lefts, word, 0.75)


def _draw_span(axis: Axes, lefts: list[float], text: str, height: float) -> None:
    ends = [lefts[0] + 0.05, lefts[-1] + 0.95]
    axis.plot(ends, [-height + 0.28] * 2, color="#888888", linewidth=0.8)
    axis.text(sum(ends) / 2, -height, text, ha="center", va="center", fontsize=8)


def frame_handles() -> list[Patch]:
    """Legend entries of the two frames."""
    return [Patch(edgecolor=FRAMES[key], label=text, **_FRAME) for key, text in NAMES.items()]
