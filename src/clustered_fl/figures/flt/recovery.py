"""Maps of settings: which of them find the true groups, and how often (FLT, Algorithm 2)."""

import textwrap
from collections.abc import Collection, Sequence

import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from clustered_fl.figures import SMALL, WIDTH, use_style
from clustered_fl.figures.methods import LOOKS
from clustered_fl.figures.typesetting import typeset

# Centres per client that the paper prints; the code takes the number of a client's labels.
PRINTED_K, GAMMA = 5, 1.0
WORDS = {"matching": "matching (code)", "minimum": "smallest (paper)"}
TITLES = {False: "k = labels of a client (code)", True: f"k = {PRINTED_K} (paper)"}
FRAMES = {
    "code": {"edgecolor": "black"},
    # Dashed, as black and dark red are alike in grey.
    "paper": {"edgecolor": LOOKS["flt"]["color"], "linestyle": (0, (3, 1.2))},
}
FRAMES["all of the paper"] = FRAMES["paper"] | {"linewidth": 2.8}
_FRAME = {"fill": False, "linewidth": 1.4}
NAMES = {
    "code": "distance, k and γ of the code",
    "paper": "distance, k and γ of the paper",
    "all of the paper": "all settings of the paper",
}
# Room for labels of rows, in cells; characters of their lines; inches of a row; rows of heads.
LABELS, LETTERS, ROW, HEADS = 3.4, 24, 0.31, 3

Rows = Sequence[Sequence[str]]
"""Of each row: the block it belongs to, its label, the name of its grouping."""
Line = tuple[str, str]
"""A label and its grouping, "" for the heading of a block."""


def draw(table: pd.DataFrame, rows: Rows, printed: Collection[str] = ()) -> Figure:
    """Maps below each other: the code's k, where any grouping was tried with it, and the paper's.

    Args:
        table: as `metrics.flt.recovery.over_seeds` finds it, without index.
        rows: from top to bottom; a map leaves out a row without numbers.
        printed: groupings whose other settings are the paper's too.
    """
    use_style()
    table = table[table["grouping"].isin([grouping for *_, grouping in rows])]
    halves = dict(list(table.groupby(table["k"] == PRINTED_K)))
    lines = {half: _lines(rows, set(own["grouping"])) for half, own in halves.items()}
    heights = [len(each) + HEADS for each in lines.values()]
    size = (WIDTH, ROW * (sum(heights) + HEADS))
    figure, axes = plt.subplots(len(heights), 1, figsize=size, height_ratios=heights, squeeze=False)
    coded = _coded(table, rows)
    for axis, (half, own) in zip(axes[:, 0], halves.items(), strict=True):
        draw_map(axis, own, lines[half], coded, printed)
        axis.text(-LABELS, 1 - HEADS, TITLES[half], va="center", weight="bold")
    handles = [Patch(label=text, **_FRAME | FRAMES[key]) for key, text in NAMES.items()]
    figure.legend(handles=handles, loc="outside upper left")
    return figure


def draw_map(
    axis: Axes,
    table: pd.DataFrame,
    lines: Sequence[Line],
    coded: set[tuple[str, int]],
    printed: Collection[str],
) -> None:
    """One cell per grouping and setting: mean agreement, and how many trials were exact.

    Args:
        coded: (grouping, k) of the code's settings, which have a frame.
        printed: groupings whose frame of the paper's settings is thick.
    """
    settings, names = _settings(table), [grouping for _, grouping in lines]
    mean = table["ari"].map("{:z.2f}".format).map(typeset)
    exact = table["exact"].astype(str) + "/" + table["trials"].astype(str)
    shown = table.assign(words=mean + "\n" + exact)
    # Every place once: a second value for one, which `pivot_table` would hide, is an error.
    axes = {"index": "grouping", "columns": ["distance", "gamma"]}
    order = {"index": names, "columns": pd.MultiIndex.from_tuples(settings)}
    shares, words = (
        shown.pivot(values=column, **axes).reindex(**order)  # noqa: PD010
        for column in ("ari", "words")
    )
    # An agreement of 1 is not the darkest blue, on which a black frame would not show.
    colours = {"vmin": 0, "vmax": 1.4, "cmap": "Blues", "cbar": False, "linewidths": 1}
    sns.heatmap(shares, annot=words, fmt="", annot_kws={"fontsize": SMALL}, ax=axis, **colours)
    axis.axvline(len(settings) / 2, color="white", linewidth=5)
    for cell in table[table["gamma"] == GAMMA].itertuples():
        place = settings.index((cell.distance, GAMMA)), names.index(cell.grouping)
        if cell.distance == "matching" and (cell.grouping, cell.k) in coded:
            _draw_frame(axis, place, "code")
        if cell.distance == "minimum" and cell.k == PRINTED_K:
            _draw_frame(axis, place, "all of the paper" if cell.grouping in printed else "paper")
    _draw_labels(axis, lines)
    _draw_heads(axis, settings)


def _settings(table: pd.DataFrame) -> list[tuple[str, float]]:
    """Distance and threshold of each column of a map."""
    return [(distance, gamma) for distance in WORDS for gamma in sorted(set(table["gamma"]))]


def _lines(rows: Rows, shown: set[str]) -> list[Line]:
    """Lines of a map: each block's heading and its rows with numbers."""
    found: dict[str, list[Line]] = {}
    for block, label, grouping in rows:
        if grouping in shown:
            found.setdefault(block, [(block, "")]).append((label, grouping))
    return [line for lines in found.values() for line in lines]


def _coded(table: pd.DataFrame, rows: Rows) -> set[tuple[str, int]]:
    """Each grouping with the code's k, the smallest that was tried in its block."""
    block_of = {grouping: block for block, _, grouping in rows}
    smallest = table["k"].groupby(table["grouping"].map(block_of)).min()
    return {(grouping, smallest[block_of[grouping]]) for grouping in set(table["grouping"])}


def _draw_frame(axis: Axes, place: tuple[int, int], name: str) -> None:
    corner = [edge + 0.05 for edge in place]
    axis.add_patch(Rectangle(corner, 0.9, 0.9, zorder=3, **_FRAME | FRAMES[name]))


def _draw_labels(axis: Axes, lines: Sequence[Line]) -> None:
    """Headings of blocks in bold, labels of rows left of their cells."""
    axis.set(yticks=[], ylabel="")
    for height, (label, grouping) in enumerate(lines):
        if grouping:
            text = textwrap.fill(label, LETTERS)
            axis.text(-0.15, height + 0.5, text, ha="right", va="center", fontsize=SMALL)
        else:
            text = balanced(label, 2 * LETTERS)
            axis.text(-LABELS, height + 0.9, text, va="bottom", fontsize=SMALL, weight="bold")


def balanced(text: str, width: int) -> str:
    """Text in as few lines as `textwrap.fill` needs, the last no single word if possible."""
    lines = -(-len(text) // width)
    narrow = textwrap.wrap(text, -(-len(text) // lines) + width // 8)
    return "\n".join(narrow) if len(narrow) == lines else textwrap.fill(text, width)


def _draw_heads(axis: Axes, settings: list[tuple[str, float]]) -> None:
    """Threshold above each column, distance above its columns."""
    axis.xaxis.tick_top()
    heads = [f"{gamma:g}" for _, gamma in settings]
    axis.set_xticks([n + 0.5 for n in range(len(settings))], heads, fontsize=SMALL)
    axis.tick_params(length=0)
    axis.set(xlabel="")
    axis.text(-0.15, -0.35, "γ", ha="right", va="center", fontsize=SMALL)
    for n, word in enumerate(WORDS.values()):
        middle = (n + 0.5) * len(settings) / len(WORDS)
        axis.text(middle, -1.1, word, ha="center", va="center", fontsize=SMALL)
