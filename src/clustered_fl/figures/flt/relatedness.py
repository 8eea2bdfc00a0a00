"""Drawings of related clients: matrices, dendrograms, graphs, and the points behind them."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import ListedColormap
from matplotlib.patches import Rectangle
from scipy.cluster.hierarchy import dendrogram

from clustered_fl.figures import BAND, CLUSTERS, MIXED, cluster_colour

RELATED = ListedColormap(["white", CLUSTERS[0]])


def draw_matrix(axis: Axes, related: np.ndarray, groups: np.ndarray | None = None) -> None:
    """Draw a relatedness of 0 and 1 [M, M] as squares, true clusters [M] as a strip along the rows.

    The first client is in the upper left.
    """
    axis.imshow(related, cmap=RELATED, vmin=0, vmax=1, interpolation="nearest")
    axis.set(xticks=[], yticks=[])
    for side in axis.spines.values():
        side.set_visible(True)
    wide = 0.04 * len(related)
    for row, group in enumerate(() if groups is None else groups):
        place, colour = (-0.5 - 1.5 * wide, row - 0.5), cluster_colour(group)
        axis.add_patch(Rectangle(place, wide, 1, color=colour, clip_on=False, linewidth=0))


def draw_dendrogram(axis: Axes, tree: np.ndarray, groups: np.ndarray) -> None:
    """Draw SciPy's linkage of M clients, its leaves above the columns of the reordered matrix.

    What is of one cluster of `groups` [M] has its colour.
    """
    colours = _link_colours(tree, groups)
    drawn = dendrogram(tree, no_plot=True, link_color_func=colours.__getitem__)
    # SciPy puts leaf i at 5 + 10 i.
    across, height = (np.array(drawn[name]) for name in ("icoord", "dcoord"))
    lines = np.stack([(across - 5) / 10, height], axis=2)
    axis.add_collection(LineCollection(lines, colors=drawn["color_list"], linewidths=0.7))
    axis.set(xlim=(-0.5, len(groups) - 0.5), ylim=(0, 1.02 * height.max()))
    axis.axis("off")


def _link_colours(tree: np.ndarray, groups: np.ndarray) -> dict[int, str]:
    """Colour of every inner node, by its number: that of its cluster, or of mixed ones."""
    found = [{int(group)} for group in groups]
    for left, right in tree[:, :2].astype(int):
        found.append(found[left] | found[right])
    inner = range(len(groups), len(found))
    return {n: cluster_colour(*found[n]) if len(found[n]) == 1 else MIXED for n in inner}


def circle(clients: int) -> np.ndarray:
    """Places of clients on a circle in their order [clients, 2], the first on top."""
    angle = np.pi / 2 - 2 * np.pi * np.arange(clients) / clients
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


def circles(groups: np.ndarray) -> np.ndarray:
    """Places of clients [M, 2]: every group on a small circle, the circles on a large one."""
    names = np.unique(groups)
    centres, places = circle(len(names)), np.zeros((len(groups), 2))
    for centre, name in zip(centres, names, strict=True):
        members = np.flatnonzero(groups == name)
        size = 0.4 * np.sin(np.pi / max(len(names), 2)) if len(members) > 1 else 0.0
        places[members] = centre + size * circle(len(members))
    return places


def draw_graph(axis: Axes, related: np.ndarray, places: np.ndarray, groups: np.ndarray) -> None:
    """Draw the graph of clients: true clusters [M] in their colours, links between them dark."""
    first, second = np.nonzero(np.triu(related, 1))
    crossing = groups[first] != groups[second]
    lines = np.stack([places[first], places[second]], axis=1)
    style = {"colors": np.where(crossing, MIXED, "#aaaaaa"), "zorder": 1}
    axis.add_collection(LineCollection(lines, linewidths=np.where(crossing, 1.1, 0.6), **style))
    shown = {"color": [cluster_colour(group) for group in groups], "edgecolor": "white"}
    axis.scatter(*places.T, s=36, linewidth=0.6, zorder=2, **shown)
    axis.set_aspect("equal")
    axis.axis("off")


def draw_points(axis: Axes, points: np.ndarray, groups: np.ndarray) -> None:
    """Draw points [n, 2 or 3] in the colours of their true clusters [n], none on top of all others.

    Clusters that share a label have points in the same place; a random order lets both be seen.
    """
    order = np.random.default_rng(0).permutation(len(points))
    colours = [cluster_colour(group) for group in groups[order]]
    axis.scatter(*points[order].T, c=colours, s=8, linewidth=0, alpha=0.8)
    axis.set(xticks=[], yticks=[])
    if points.shape[1] == 3:
        axis.set_zticks([])


def draw_pictures(axis: Axes, images: np.ndarray, again: np.ndarray) -> None:
    """Draw images, uint8 [n, channels, height, width], above their reconstructions."""
    margin = int(BAND[1:3], 16)
    rows = []
    for pictures in (images, again):
        padded = np.pad(pictures, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=margin)
        rows.append(np.concatenate(list(padded.transpose(0, 2, 3, 1)), axis=1))
    strips = np.concatenate(rows)
    shown = np.broadcast_to(strips, (*strips.shape[:2], 3))
    axis.imshow(shown, vmin=0, vmax=255, interpolation="nearest")
    axis.axis("off")
