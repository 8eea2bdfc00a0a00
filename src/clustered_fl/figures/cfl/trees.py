"""Drawings of the groups that a method found: over the rounds, and as a parameter tree."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import FancyBboxPatch

from clustered_fl.figures import BAND, SMALL, cluster_colour
from clustered_fl.metrics.cfl.tree import bent

# Of a box of the tree, in units of leaves and levels.
_WIDTH, _HEIGHT, _BAR = 0.94, 0.58, 0.1

Share = Mapping[int, int]
"""True cluster -> number of clients."""


def draw_lanes(axis: Axes, lanes: pd.DataFrame, labels: Mapping[int, str]) -> None:
    """Draw the lanes of clients, coloured by true cluster, in labelled bands around the groups."""
    end = lanes["stop"].max()
    x, bend = np.linspace(0, end, 600), 0.05 * end
    heights = bent(lanes, x, bend)
    colours = lanes.groupby("client")["true_group"].first().map(cluster_colour)
    for client, height in heights.iterrows():
        axis.plot(x, height, color=colours[client], linewidth=1.6, solid_capstyle="butt")
    for node, own in lanes.groupby("node"):
        first = own["start"].min() + (bend if own["start"].min() else 0.0)
        inside = (x >= first) & (x <= own["stop"].max())
        bundle = heights.loc[own["client"].unique(), inside]
        low, high = bundle.min() - 0.9, bundle.max() + 0.9
        axis.fill_between(x[inside], low, high, color=BAND, linewidth=0, zorder=0)
        axis.text(first, high.iloc[0] + 0.2, labels[node], fontsize=SMALL, va="bottom")
    axis.set(yticks=[], xlim=(0, end))
    axis.spines["left"].set_visible(False)


def draw_tree(
    axis: Axes, nodes: pd.DataFrame, shares: Mapping[int, Share], labels: Mapping[int, str]
) -> None:
    """Draw a parameter tree: boxes with the composition of their clients, edges with their updates.

    Args:
        nodes: as `metrics.cfl.tree.summary` makes them, indexed by node.
        labels: node -> lines of text below its bar.
    """
    box = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
    style = {"fontsize": SMALL, "ha": "center", "va": "center", "bbox": box}
    for node in nodes.itertuples():
        if node.parent == node.parent:  # the root's is NaN
            parent = nodes.loc[int(node.parent)]
            x = [parent.across, node.across]
            y = [parent.depth + _HEIGHT / 2, node.depth - _HEIGHT / 2]
            axis.plot(x, y, color="#888888", linewidth=1, zorder=0)
            # Near the child, where texts of neighbouring edges are apart.
            place = np.average([x, y], axis=1, weights=[0.3, 0.7])
            axis.text(*place, f"{node.updates} updates", **style)
        _box(axis, node.across, node.depth, shares[node.Index], labels[node.Index])
    axis.set(xlim=(-0.5, nodes["across"].max() + 0.5), ylim=(nodes["depth"].max() + 0.7, -0.35))
    axis.axis("off")


def _box(axis: Axes, x: float, y: float, share: Share, label: str) -> None:
    corner, top = (x - _WIDTH / 2, y - _HEIGHT / 2), y - _HEIGHT / 2 + 0.04
    style = "round,pad=0,rounding_size=0.05"
    frame = {"boxstyle": style, "facecolor": "white", "edgecolor": "#888888"}
    axis.add_patch(FancyBboxPatch(corner, _WIDTH, _HEIGHT, **frame))
    unit, left = (_WIDTH - 0.08) / sum(share.values()), x - _WIDTH / 2 + 0.04
    for cluster, count in share.items():
        colour = cluster_colour(cluster)
        axis.barh(top, count * unit, _BAR, left, align="edge", color=colour, linewidth=0)
        left += count * unit
    axis.text(x, top + _BAR + 0.03, label, fontsize=SMALL, ha="center", va="top", linespacing=1.3)


def draw_newcomers(axis: Axes, nodes: pd.DataFrame, newcomers: pd.DataFrame) -> Line2D:
    """Draw newcomers below the leaves of a tree that they were led to; the entry of a legend.

    Args:
        nodes: of the tree that `draw_tree` drew.
        newcomers: columns leaf, true_group and label, the lines of text below its mark.
    """
    for leaf, landed in newcomers.groupby("leaf"):
        low = nodes.loc[leaf, "depth"] + _HEIGHT / 2 + 0.1
        places = nodes.loc[leaf, "across"] + 0.38 * (np.arange(len(landed)) - (len(landed) - 1) / 2)
        for x, new in zip(places, landed.itertuples(), strict=True):
            axis.plot(x, low, "^", color=cluster_colour(new.true_group), markersize=6)
            axis.text(x, low + 0.07, new.label, fontsize=SMALL, ha="center", va="top")
    return Line2D([], [], marker="^", linestyle="none", color="#888888", label="newcomer")
