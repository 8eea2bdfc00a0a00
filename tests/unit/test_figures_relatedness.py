"""Drawings of relatedness: colours stay with their clients, leaves stand above their columns."""

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
    yield figures.panels(1, 1, 3.4, 2.6)[1][0, 0]
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


@pytest.fixture
def map_axes(table):
    yield dict(zip(maps.TITLES, maps.draw(table, ROWS).axes, strict=True))
    plt.close("all")


def frames(axis, name: str) -> set[tuple[float, float]]:
    """Column and line of each frame of a colour."""
    colour = to_hex(maps.FRAMES[name]["edgecolor"])
    return {
        (round(patch.get_x() - 0.05), round(patch.get_y() - 0.05))
        for patch in axis.patches
        if to_hex(patch.get_edgecolor()) == colour
    }


def words(axis) -> list[str]:
    return [text.get_text() for text in axis.texts]


def test_every_setting_is_a_cell_and_nothing_unasked_is_drawn(map_axes):
    coded, printed = (words(axis) for axis in map_axes.values())
    assert coded.count("0.50\n1/4") == 6
    assert printed.count("1.25\n1/4") == 18
    assert len(coded) == 6 + 2 + 3 + 1  # cells, a heading and a row, heads of columns, title
    assert {"S1", "Enc1", "γ", *maps.WORDS.values()} < set(coded)
    assert {"S1", "S4", "Enc1", "printed", "Enc2"} < set(printed)


def test_a_map_leaves_out_rows_without_numbers(map_axes):
    assert maps._lines(ROWS, {"c", "a"}) == [("S1", ""), ("Enc1", "a"), ("S4", ""), ("Enc2", "c")]
    assert not [word for axis in map_axes.values() for word in words(axis) if word == "not run"]


def test_frames_mark_the_settings_of_code_and_paper(map_axes):
    """The code has matching with the scenario's own k, which is 5 in the second block; gamma 1."""
    assert frames(map_axes[False], "code") == {(1, 1)}
    assert frames(map_axes[False], "paper") == set()
    assert frames(map_axes[True], "code") == {(1, 4)}
    assert frames(map_axes[True], "paper") == {(4, 1), (4, 2), (4, 4)}


def test_headings_are_divided_in_the_middle():
    heading = "Scenario 2, CIFAR-10, images drawn (Table V): 5 clusters"
    assert maps.balanced(heading, 48).splitlines()[1] == "(Table V): 5 clusters"
    assert maps.balanced("Scenario 2: 5 clusters", 48) == "Scenario 2: 5 clusters"


def test_colour_means_agreement(table):
    rows = table.assign(ari=[1.0 if gamma == 2 else -0.1 for gamma in table["gamma"]])
    axis = maps.draw(rows, ROWS).axes[0]
    axis.figure.canvas.draw()
    shades = [to_hex(shade) for shade in axis.collections[0].get_facecolors()[6:]]
    pale, dark = (to_hex(plt.get_cmap("Blues")(value / 1.4)) for value in (0.0, 1.0))
    assert shades == [pale, pale, dark] * 2
    assert "−0.10\n1/4" in words(axis)
    plt.close("all")


def test_a_map_of_the_printed_k_alone_is_one_panel(table):
    figure = maps.draw(table[table["k"] == 5], ROWS)
    assert [maps.TITLES[True] in words(axis) for axis in figure.axes] == [True]
    plt.close("all")
