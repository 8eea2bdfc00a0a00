"""Drawings of relatedness: colours stay with their clients, leaves stand above their columns."""

from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import tiny_groupings as tiny
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle

from clustered_fl import figures
from clustered_fl.figures.flt import recovery as maps
from clustered_fl.figures.flt import relatedness as drawings
from clustered_fl.metrics.flt import recovery

GROUPS = np.array([0, 1, 0, 2, 1, 2, 0])


@pytest.fixture
def axis():
    yield figures.panels(1, 1)[1][0, 0]
    plt.close("all")


def fills(axis) -> list[Rectangle]:
    return [patch for patch in axis.patches if patch.get_fill()]


def test_the_strip_beside_a_matrix_has_the_colours_of_its_rows(axis):
    drawings.draw_matrix(axis, tiny.blocks(GROUPS), GROUPS)
    strip = {round(patch.get_y() + 0.5): to_hex(patch.get_facecolor()) for patch in axis.patches}
    assert strip == {row: figures.cluster_colour(group) for row, group in enumerate(GROUPS)}
    assert np.array_equal(axis.images[0].get_array(), tiny.blocks(GROUPS))


def test_without_groups_there_is_no_strip(axis):
    drawings.draw_matrix(axis, np.eye(3))
    assert not axis.patches


def test_leaves_stand_above_their_columns(axis):
    """Every leaf of the dendrogram begins at a whole number, the position of its column."""
    tree, order = recovery.ward_tree(tiny.blocks(GROUPS))
    drawings.draw_dendrogram(axis, tree, GROUPS)
    ends = [line[[0, -1]] for line in axis.collections[0].get_segments()]
    leaves = sorted(x for pair in ends for x, height in pair if height == 0)
    assert set(leaves) >= set(range(len(order)))
    assert axis.get_xlim() == (-0.5, len(order) - 0.5)


def test_branches_of_one_cluster_have_its_colour(axis):
    tree, _ = recovery.ward_tree(tiny.blocks(GROUPS))
    colours = drawings._link_colours(tree, GROUPS)
    counts = pd.Series(colours).value_counts().to_dict()
    expected = {figures.cluster_colour(0): 2, figures.cluster_colour(1): 1}
    assert counts == expected | {figures.cluster_colour(2): 1, figures.MIXED: 2}


def test_clients_of_a_group_stand_on_one_circle():
    places = drawings.circles(GROUPS)
    for group in range(3):
        own = places[group == GROUPS]
        near = np.linalg.norm(own - own.mean(0), axis=1).max()
        far = np.linalg.norm(places[group != GROUPS] - own.mean(0), axis=1).min()
        assert near < far
    assert len(np.unique(places.round(6), axis=0)) == len(GROUPS)


def test_a_group_of_one_stands_in_its_centre():
    places = drawings.circles(np.array([0, 0, 1]))
    assert places[2] == pytest.approx(drawings.circle(2)[1])


def test_links_across_clusters_are_dark(axis):
    related = tiny.blocks(GROUPS)
    related[0, 1] = related[1, 0] = 1
    drawings.draw_graph(axis, related, drawings.circle(7), GROUPS)
    colours = [to_hex(colour) for colour in axis.collections[0].get_colors()]
    assert len(colours) == 3 + 1 + 1 + 1
    assert colours.count(figures.MIXED) == 1


def test_points_keep_their_colours_in_a_random_order(axis):
    points = np.random.default_rng(0).normal(size=(7, 2))
    drawings.draw_points(axis, points, GROUPS)
    drawn = axis.collections[0]
    colours = [to_hex(colour) for colour in drawn.get_facecolor()]
    order = [int(np.linalg.norm(points - each, axis=1).argmin()) for each in drawn.get_offsets()]
    assert sorted(order) == list(range(7))
    assert order != list(range(7))
    assert colours == [figures.cluster_colour(GROUPS[client]) for client in order]


def test_points_in_space_have_no_ticks_on_any_axis():
    axis = plt.figure().add_subplot(projection="3d")
    drawings.draw_points(axis, np.eye(3), np.arange(3))
    assert [len(ticks()) for ticks in (axis.get_xticks, axis.get_yticks, axis.get_zticks)] == [
        0
    ] * 3
    plt.close("all")


@pytest.mark.parametrize("channels", [1, 3])
def test_images_stand_above_their_reconstructions(axis, channels):
    images = np.random.default_rng(0).integers(0, 255, (4, channels, 5, 6), dtype=np.uint8)
    drawings.draw_pictures(axis, images, 255 - images)
    shown = np.asarray(axis.images[0].get_array())
    assert shown.shape == (2 * 7, 4 * 8, 3)
    third = shown[1:6, 2 * 8 + 1 : 2 * 8 + 7]
    assert np.array_equal(third, np.broadcast_to(images[2].transpose(1, 2, 0), third.shape))
    again = shown[8:13, 1:7]
    assert np.array_equal(again, 255 - shown[1:6, 1:7])


# ---- The map of settings -------------------------------------------------------------------------

ROWS = [("S1", "Enc1", "a"), ("S1", "printed", "b"), ("S4", "Enc2", "c"), ("S4", "not run", "d")]


def cells(name: str, sizes: tuple[int, ...]) -> list[dict]:
    return [
        {"grouping": name, "k": k, "distance": distance, "gamma": gamma, "ari": 0.25 * k}
        | {"exact": 1, "trials": 4, "components": 5.0}
        for k in sizes
        for distance in ("minimum", "matching")
        for gamma in (0.5, 1.0, 2.0)
    ]


@pytest.fixture
def table():
    found = pd.DataFrame([*cells("a", (2, 5)), *cells("b", (5,)), *cells("c", (5,))])
    return pd.concat([found, pd.DataFrame(cells("unasked", (5,)))])


def frames(axis, name: str) -> set[tuple[float, float]]:
    colour = to_hex(maps.FRAMES[name])
    return {
        (round(patch.get_x() - 0.03, 2), round(patch.get_y() - 0.03, 2))
        for patch in axis.patches
        if not patch.get_fill() and to_hex(patch.get_edgecolor()) == colour
    }


def test_every_setting_is_a_cell_and_nothing_unasked_is_drawn(axis, table):
    maps.draw_map(axis, table, ROWS)
    assert len(fills(axis)) == 12 + 6 + 6
    words = [text.get_text() for text in axis.texts]
    assert words.count("0.50") == 6
    assert words.count("1/4 · 5") == 24
    assert {"S1", "S4", "Enc1", "printed", "Enc2", "not run", "γ = 0.5"} <= set(words)


def test_cells_do_not_overlap(axis, table):
    maps.draw_map(axis, table, ROWS)
    corners = sorted((patch.get_y(), patch.get_x()) for patch in fills(axis))
    for (y, x), (below, right) in pairwise(corners):
        assert below - y >= 1 or right - x >= 1


def test_frames_mark_the_settings_of_code_and_paper(axis, table):
    """The code has matching with the scenario's own k, which is 5 in the second block; gamma 1."""
    maps.draw_map(axis, table, ROWS)
    columns = maps._columns([0.5, 1.0, 2.0])
    down, _ = maps._lines(ROWS)
    own, five = columns[False, "matching", 1.0], columns[True, "matching", 1.0]
    printed = columns[True, "minimum", 1.0]
    assert frames(axis, "code") == {(round(own, 2), down["a"]), (round(five, 2), down["c"])}
    assert frames(axis, "paper") == {(round(printed, 2), down[name]) for name in "abc"}


def test_colour_means_agreement(axis, table):
    maps.draw_map(axis, table.assign(ari=[-0.1, 1.0] * 15), ROWS)
    shades = {to_hex(patch.get_facecolor()) for patch in fills(axis)}
    assert shades == {to_hex(plt.get_cmap("Blues")(value)) for value in (0.0, 1.0)}


def test_the_map_grows_with_rows_and_thresholds():
    small, large = maps.size(ROWS[:2], 3), maps.size(ROWS, 4)
    assert small[0] < large[0]
    assert small[1] < large[1]


def test_every_frame_is_explained():
    assert len(maps.frame_handles()) == len(maps.FRAMES)
