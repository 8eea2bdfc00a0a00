"""Figures: equal bytes for equal numbers, honest notes, drawings without overlaps."""

from itertools import combinations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import seaborn as sns
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.colors import to_hex
from PIL import Image
from tiny_records import TREE, TRUTH, record, scores

from clustered_fl import figures
from clustered_fl.data.builtin import NOTE
from clustered_fl.figures.cfl import splits, trees
from clustered_fl.metrics.cfl import tree


@pytest.fixture(autouse=True)
def closed():
    """Leave no figure open for the next test."""
    yield
    plt.close("all")


def draw(folder):
    data = pd.DataFrame({"x": [0, 1, 0, 1], "y": [0.1, 1 / 3, 0.2, 0.5]})
    figure, axes = figures.panels(1, 2, 3.4, 2.6)
    sns.lineplot(data, x="x", y="y", ax=axes[0, 0], errorbar=("pi", 100))
    axes[0, 1].fill_between([0, 1], [0, 1], label="ε₁")
    figures.legend_above(figure, axes[0])
    figures.save(figure, data, folder, "figure", figures.provenance("demo", "builtin", 2))
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_equal_numbers_are_equal_bytes(tmp_path):
    first = draw(tmp_path / "first")
    plt.close("all")
    assert set(first) == {f"figure.{suffix}" for suffix in ("png", "pdf", "svg", "csv")}
    assert draw(tmp_path / "second") == first


def test_few_colours_look_like_all_and_take_less(tmp_path):
    figure, axes = figures.panels(1, 1, 3.4, 2.6)
    axes[0, 0].imshow(np.arange(100).reshape(10, 10), cmap="viridis")
    figures.save(figure, pd.DataFrame({"x": [1]}), tmp_path, "figure", "note")
    figure.savefig(tmp_path / "all.png")
    few, every = (Image.open(tmp_path / f"{name}.png") for name in ("figure", "all"))
    difference = np.asarray(few.convert("RGB")).astype(int) - np.asarray(every.convert("RGB"))
    assert (np.abs(difference).max(2) > 16).mean() < 0.002
    assert few.info["dpi"] == every.info["dpi"]
    assert (tmp_path / "figure.png").stat().st_size < (tmp_path / "all.png").stat().st_size / 2


def test_the_legend_of_clusters_is_read_line_by_line():
    figure, _ = figures.panels(1, 1, 4, 3)
    figures.cluster_legend(figure, [f"cluster {number}" for number in range(1, 7)])
    figure.canvas.draw()
    texts = figure.legends[0].get_texts()
    places = [text.get_window_extent() for text in texts]
    lines = sorted(
        zip(texts, places, strict=True), key=lambda each: (-round(each[1].y0), each[1].x0)
    )
    assert [text.get_text()[-1] for text, _ in lines] == list("123456")


def test_numbers_are_saved_beside_the_drawing(tmp_path):
    draw(tmp_path)
    assert pd.read_csv(tmp_path / "figure.csv")["y"].tolist() == [0.1, 0.333333, 0.2, 0.5]


def test_figures_say_of_built_in_data_what_the_data_say():
    assert figures.DEMO == NOTE


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("demo", "builtin", 1), f"scale demo · {figures.DEMO} · 1 seed"),
        (("paper", "real", 3), "scale paper · real data · 3 seeds"),
        (("demo", "none", None), "scale demo"),
        (("demo", "none", [3, 1, 2, 1]), "scale demo · 1–3 seeds"),
        (("demo", "none", pd.Series([1, 1])), "scale demo · 1 seed"),
        (("demo", "none", np.int64(2)), "scale demo · 2 seeds"),
        (("desktop", "real", 1, "half"), "scale desktop · real data · half · 1 seed"),
        (("demo", "none", 1, "", 1), "scale demo · 1 seed"),
        (("demo", "none", 1, "", 3), "scale demo · first of 3 seeds"),
        (("demo", "none", [1, 3], "", 1, True), f"scale demo · 1–3 seeds · {figures.BANDS}"),
        (("demo", "none", [1, 1], "", 1, True), "scale demo · 1 seed"),
    ],
)
def test_provenance(arguments, line):
    assert figures.provenance(*arguments) == line


def test_datasets_are_named_once_and_real_ones_only():
    def about(**changes):
        note = {"name": "ag_news", "source": "mirror", "complete": False, "note": "44% of it"}
        return {"data": note | changes}

    told = figures.real_data([about(), about(), about(name="mnist", complete=True)])
    assert told == "AG News (44% of it), MNIST"
    assert figures.real_data([about(source="builtin")]) == ""
    assert figures.real_data([about(name="mine", complete=True)]) == "mine"


def test_a_long_note_stays_inside_a_narrow_figure(tmp_path):
    figure, _ = figures.panels(1, 1, 2.5, 2.6)
    note = figures.provenance("demo", "builtin", 3, "ag_news: 52,814 of 120,000 training articles")
    figures.save(figure, pd.DataFrame(), tmp_path, "figure", note)
    box = figure._supxlabel.get_window_extent()
    assert box.x0 >= 0
    assert box.x1 <= figure.bbox.x1


def test_no_line_of_a_note_begins_with_a_dot(tmp_path):
    figure, _ = figures.panels(1, 1, figures.WIDTH, 2.6)
    note = figures.provenance("desktop", "real", 3, "femnist: 60,683 of 814,277 rows", trained=3)
    figures.save(figure, pd.DataFrame(), tmp_path, "figure", note)
    _, second = figure._supxlabel.get_text().splitlines()
    assert not second.startswith("·")


def test_style_does_not_depend_on_the_fonts_of_a_machine():
    figures.use_style()
    assert plt.rcParams["font.sans-serif"] == ["DejaVu Sans"]


def test_clusters_repeat_their_colours_only_after_eight():
    assert len({figures.cluster_colour(group) for group in range(8)}) == 8
    assert figures.cluster_colour(8) == figures.cluster_colour(0)


def test_pure_groups_have_their_colour_and_mixed_ones_differ():
    styles = figures.group_styles({0: {0, 1, 2}, 1: {0, 2}, 2: {1}, 3: {0}, 4: {1}})
    colours = [style["color"] for style in styles.values()]
    assert colours == [figures.MIXED] * 2 + [figures.cluster_colour(k) for k in (1, 0, 1)]
    dashes = [style["linestyle"] for style in styles.values()]
    solid, first, second = (figures.cluster_style(group)["linestyle"] for group in range(3))
    assert dashes == [solid, first, first, solid, second]
    assert len({solid, first, second, figures.cluster_style(3)["linestyle"]}) == 4


def test_first_positive_points_are_ringed_at_their_mean():
    table = pd.DataFrame({"similarity": "update", "n": [1, 1, 2, 2], "gap": [-1, 0, 0.2, 0.4]})
    _, axes = figures.panels(1, 1, 3.4, 2.6)
    figures.mark_first(axes[0, 0], table, "n", pd.Series({"update": 2}))
    ring = axes[0, 0].get_lines()[-1]
    assert (ring.get_xdata(), ring.get_ydata()) == ([2], [pytest.approx(0.3)])
    assert [text.get_text() for text in axes[0, 0].texts] == ["2"]


@given(st.sets(st.integers(1, 100_000), min_size=2, max_size=15))
def test_labels_of_a_logarithmic_axis_do_not_touch(values):
    places = sorted(values)
    labels = figures._readable(places)
    assert len(labels) == len(places)
    assert labels[0] == f"{places[0]:,}"
    at = np.log([place for place, label in zip(places, labels, strict=True) if label])
    assert (np.diff(at) >= 0.0949 * np.log(places[-1] / places[0])).all()


def test_every_measured_value_has_a_tick():
    _, axes = figures.panels(1, 1, 3.4, 2.6)
    figures.log_ticks(axes[0, 0], [75, 10, 100])
    assert axes[0, 0].get_xticks().tolist() == [10, 75, 100]


def test_splits_share_one_entry_of_the_legend():
    _, axes = figures.panels(1, 1, 3.4, 2.6)
    figures.mark_splits(axes[0, 0], [3, 5])
    assert axes[0, 0].get_legend_handles_labels()[1] == ["split"]
    assert [line.get_xdata()[0] for line in axes[0, 0].get_lines()] == [3, 5]


def test_a_legend_above_names_every_curve_once():
    figure, axes = figures.panels(1, 2, 3.4, 2.6)
    for axis in axes[0]:
        axis.plot([0, 1], label="a")
        axis.legend()
    axes[0, 1].plot([1, 0], label="b")
    figures.legend_above(figure, axes[0])
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["a", "b"]
    assert axes[0, 0].get_legend() is None


def test_lanes_have_a_line_per_client_in_the_colour_of_its_cluster():
    _, axes = figures.panels(1, 1, 3.4, 2.6)
    lanes = tree.lanes(TREE, TRUTH, end=10, space=3.0)
    trees.draw_lanes(axes[0, 0], lanes, {node["id"]: f"node {node['id']}" for node in TREE})
    colours = [to_hex(line.get_color()) for line in axes[0, 0].get_lines()]
    assert colours == [figures.cluster_colour(group).lower() for group in TRUTH]
    assert [text.get_text() for text in axes[0, 0].texts] == [f"node {k}" for k in range(5)]


@pytest.fixture
def drawn_tree():
    columns = ["round", "scope", "member", "metric", "value"]
    rounds = pd.DataFrame(scores({0: [0.5] * 6, 10: [0.5] * 6}), columns=columns)
    table = tree.summary(record(), rounds)
    shares = {node["id"]: tree.composition(node["clients"], TRUTH) for node in TREE}
    labels = {node["id"]: "20 clients, rounds 100–150\naccuracy 0.55\ncut 0.50" for node in TREE}
    landed = pd.DataFrame(
        {"leaf": [2, 4, 4], "true_group": [1, 0, 2], "label": ["newcomer\n0.5"] * 3}
    )
    figure, axes = figures.panels(1, 1, width=5.4, height=4.35)
    trees.draw_tree(axes[0, 0], table, shares, labels)
    trees.draw_newcomers(axes[0, 0], table, landed)
    figure.canvas.draw()
    return axes[0, 0]


def test_bars_of_the_tree_show_the_composition(drawn_tree):
    root = [bar for bar in drawn_tree.patches if getattr(bar, "get_width", None)][:4]
    widths = [bar.get_width() for bar in root if bar.get_height() == trees._BAR]
    assert widths == pytest.approx([widths[0]] * len(widths))
    assert len(widths) == 3


def test_texts_of_the_tree_do_not_overlap(drawn_tree):
    boxes = [text.get_window_extent() for text in drawn_tree.texts]
    assert len(boxes) == 5 + 4 + 3
    assert not any(a.overlaps(b) for a, b in combinations(boxes, 2))


def test_newcomers_have_the_colour_of_their_cluster(drawn_tree):
    marks = [line for line in drawn_tree.get_lines() if line.get_marker() == "^"]
    assert [mark.get_color() for mark in marks] == [figures.cluster_colour(g) for g in (1, 0, 2)]


def test_a_published_gap_is_an_open_diamond_on_the_zero_line():
    _, axes = figures.panels(1, 1, 3.4, 2.6)
    figures.mark_published(axes[0, 0], 1500.0)
    (mark,) = axes[0, 0].lines
    assert (mark.get_xdata().tolist(), mark.get_ydata().tolist()) == ([1500.0], [0])
    assert mark.get_markerfacecolor() == "white"
    assert [text.get_text() for text in axes[0, 0].texts] == ["1,500"]


def test_stated_values_are_dotted_lines_within_the_axes():
    _, axes = figures.panels(1, 1, 3.4, 2.6)
    splits.show_settled(
        axes[0, 0], pd.DataFrame({"round": [0, 10, 20], "value": [900, 40.0, 30.0]}), [20]
    )
    assert axes[0, 0].get_ylim() == pytest.approx((0.95 * 30, 1.05 * 40))
    splits.draw_stated(axes[0, 0], "perplexity")
    assert [line.get_ydata()[0] for line in axes[0, 0].lines] == [42, 36]
    low, high = axes[0, 0].get_ylim()
    assert low < 30
    assert high > 42
