"""What REPA's figures are drawn from, against loops over pairs, clients and rounds."""

from itertools import pairwise, product
from pathlib import Path

import literal_repa as literal
import numpy as np
import pandas as pd
import pytest
import tiny_profiles as tiny
from scipy.optimize import minimize

from clustered_fl.errors import InputError
from clustered_fl.figures import panels
from clustered_fl.figures.repa import choices
from clustered_fl.figures.repa import profiles as drawings
from clustered_fl.metrics.repa import (
    correlation,
    exposure,
    likeness,
    profiles,
    robustness,
    validation,
)
from clustered_fl.metrics.repa import uniformity as uniform
from clustered_fl.records import index
from clustered_fl.records.reading import load_record, load_rounds

COLUMNS = ["round", "scope", "member", "metric", "value"]


@pytest.fixture(scope="module")
def groupings(tmp_path_factory) -> pd.DataFrame:
    """Index of three groupings with two seeds each."""
    place = tmp_path_factory.mktemp("groupings")
    kinds = {"judge": (3, tiny.DRIFT), "other": (4, tiny.DRIFT), "still": (3, tiny.STILL)}
    rows = [
        ("grouping", name, name, s, tiny.write_grouping(place / name / str(s), s, *kind))
        for name, kind in kinds.items()
        for s in (0, 1)
    ]
    return index.build(rows)


def folder_of(groupings: pd.DataFrame, name: str, seed: int = 0) -> Path:
    return index.folder(groupings, "grouping", name, seed)


# ---- Correlation and likeness -------------------------------------------------------------------


def test_correlation_is_given_after_every_measured_round(groupings):
    folder = folder_of(groupings, "judge")
    own = tiny.counts(0)[: tiny.CLIENTS].astype(float)
    similar = correlation.label_similarity(own)
    table = correlation.over_rounds(folder, similar)
    assert table["round"].tolist() == [1, 2, 4]
    for row in table.itertuples():
        cosine = profiles.pairwise(folder, "cosine")[row.round]
        expected = literal.pearson(similar, cosine, list(range(tiny.CLIENTS)))
        assert row.correlation == pytest.approx(expected)
        assert row.error == correlation.correlation_error(similar, cosine)


def test_groupings_of_the_same_clients_have_one_judge(groupings):
    folders = {name: folder_of(groupings, name) for name in ("judge", "other", "still")}
    table = pd.read_parquet(folders["other"] / "comparisons.parquet")
    different = table.assign(value=table["value"].where(table["measure"] != "similarity", 0.5))
    different.to_parquet(folders["other"] / "comparisons.parquet")
    judges = likeness.Judges(groupings)
    first = profiles.pairwise(folders["judge"], "similarity")[4]
    for name in ("judge", "other"):
        np.testing.assert_array_equal(judges.similarity(folders[name], "pipelines"), first)
    assert judges.similarity(folders["still"], "pipelines") is None
    late = judges.similarity(folder_of(groupings, "judge", 1), "pipelines")
    assert (late != first).any()


def test_likeness_within_clusters_stands_beside_that_of_all_pairs(groupings):
    table = likeness.by_seed(groupings).set_index(["grouping", "seed", "kind"])
    assert len(table) == 12
    folder = folder_of(groupings, "other", 1)
    groups, own = load_record(folder)["groups"], tiny.counts(1)[: tiny.CLIENTS].astype(float)
    row = table.loc[("other", 1, "labels")]
    assert row["within"] == pytest.approx(literal.uniformity(groups, own))
    assert row["overall"] == pytest.approx(literal.uniformity([0] * tiny.CLIENTS, own))
    cosine = profiles.pairwise(folder, "cosine")[4]
    similar = correlation.label_similarity(own)
    assert row["correlation"] == pytest.approx(correlation.correlation(similar, cosine))
    assert table.loc[("still", 0, "pipelines")].isna().all()
    assert table.loc[("judge", 0, "pipelines")].notna().all()


def test_the_mean_within_clusters_is_a_mean_of_means_of_pairs():
    rng = np.random.default_rng(0)
    similar, groups = rng.random((7, 7)), np.array([0, 0, 0, 1, 1, 2, 2])
    similar = similar + similar.T
    own = []
    for members in ([0, 1, 2], [3, 4], [5, 6]):
        pairs = [similar[i, j] for i, j in product(members, repeat=2) if i < j]
        own.append(sum(pairs) / len(pairs))
    assert uniform.mean_within(groups, similar) == pytest.approx(np.mean(own))


# ---- Algorithm 1 --------------------------------------------------------------------------------


def test_passes_count_hits_within_each_cluster(groupings):
    folder = folder_of(groupings, "judge")
    table, counted = robustness.passes(folder), {}
    for row in table.itertuples():
        passes, hits = counted.get(row.cluster, (0, 0))
        counted[row.cluster] = passes, hits = passes + 1, hits + row.hit
        assert (row.iteration, row.hits) == (passes, hits)
        assert row.robustness == hits / passes
        assert load_record(folder)["groups"][row.reference] == row.cluster
    ends = table.groupby("cluster")["robustness"].last()
    by_cluster = robustness.by_cluster(folder).set_index("cluster")["robustness"]
    assert ends.to_dict() == pytest.approx(by_cluster.to_dict())


# ---- Accuracy -----------------------------------------------------------------------------------


def test_accuracy_of_many_runs_is_weighted_by_the_images_of_each_seed(groupings, tmp_path):
    folders = [tiny.write_run(tmp_path / "a" / str(s)) for s in (0, 1)]
    runs = index.build(("run", "family", "a", s, folder) for s, folder in enumerate(folders))
    clients = index.chosen(groupings, "grouping", "judge")
    found = validation.of_runs(runs, clients)
    sizes = 5 + np.arange(tiny.CLIENTS + tiny.NEWCOMERS)
    assert set(found["seed"]) == {0, 1}
    for seed, folder in enumerate(folders):
        expected = validation.over_rounds(load_rounds(Path(folder)), sizes)
        own = found[(found["seed"] == seed) & (found["run"] == "a")]
        pd.testing.assert_frame_equal(own[list(expected)].reset_index(drop=True), expected)
    with pytest.raises(InputError, match=r"^run a has seed 1; the grouping of its clients: 0$"):
        validation.of_runs(runs, clients[clients["seed"] == 0])


# Three clients of two clusters and three labels; client 2 is alone in its cluster.
COUNTS, GROUPS = np.array([[5, 5, 0], [0, 2, 6], [4, 0, 4]]), [0, 0, 1]


def played(participants: dict[int, list[int]], accuracy: dict[int, list[float]]) -> pd.DataFrame:
    tests = [(n, "client", c, "accuracy", v) for n, a in accuracy.items() for c, v in enumerate(a)]
    took = [(n, "client", c, "loss", 1.0) for n, own in participants.items() for c in own]
    others = [(1, "newcomer", 3, "accuracy", 0.9), (1, "group", 0, "size", 2.0)]
    return pd.DataFrame([*tests, *took, *others], columns=COLUMNS)


def test_exposure_is_to_what_the_own_cluster_trained_in_the_round_before():
    rounds = played(
        {0: [0], 1: [1], 2: []}, {0: [0.0] * 3, 1: [0.5, 0.25, 0.1], 2: [0.6, 0.7, 0.2]}
    )
    table = exposure.exposures(rounds, GROUPS, COUNTS).set_index(["round", "client"])
    assert table.index.tolist() == [(1, 0), (1, 1), (1, 2), (2, 0), (2, 1), (2, 2)]
    assert table["accuracy"].tolist() == [50, 25, 10, 60, 70, 20]
    expected = [1.0, 2 / 8, np.nan, 5 / 10, 1.0, np.nan]
    np.testing.assert_allclose(table["share"], expected)


def test_exposure_agrees_with_a_loop(tmp_path):
    folder = Path(tiny.write_run(tmp_path / "run"))
    rounds, groups, own = load_rounds(folder), load_record(folder)["groups"], tiny.counts(0)
    table = exposure.exposures(rounds, groups, own)
    assert len(table) == 10 * tiny.CLIENTS
    took = rounds[rounds["metric"] == "loss"]
    for row in table.itertuples():
        others = took[took["round"] == row.round - 1]["member"]
        held = {
            k for o in others if groups[o] == groups[row.client] for k in np.flatnonzero(own[o])
        }
        mine = {k: n for k, n in enumerate(own[row.client]) if n}
        if any(groups[o] == groups[row.client] for o in others):
            seen = sum(n for k, n in mine.items() if k in held)
            assert row.share == pytest.approx(seen / sum(mine.values()))
        else:
            assert np.isnan(row.share)


def test_rounds_without_all_labels_of_a_cluster():
    """Client 2 is alone with two labels; clients 0 and 1 have three, so their cluster counts."""
    accuracy = {now: [0.5] * 3 for now in range(5)}
    rounds = played({0: [0, 1], 1: [0, 2], 2: [2], 3: [0, 1, 2]}, accuracy)
    table = exposure.exposures(rounds, GROUPS, COUNTS)
    assert exposure.incomplete(table, GROUPS, COUNTS) == 2 / 4
    assert np.isnan(exposure.incomplete(table, [0, 1, 2], COUNTS))


def test_a_client_is_compared_with_itself():
    rows = [(1, 0, 80.0, 1.0), (2, 0, 40.0, 0.5), (3, 0, 60.0, 1.0), (4, 0, 0.0, np.nan)]
    rows += [(1, 1, 99.0, 1.0), (2, 2, 10.0, 0.0), (1, 3, 50.0, 1.0), (2, 3, 30.0, 0.9)]
    table = pd.DataFrame(rows, columns=["round", "client", "accuracy", "share"])
    assert exposure.loss(table) == {
        "seen": 60.0,
        "unseen": 35.0,
        "error": 5.0,  # of losses of 30 and 20 points
        "clients": 2,
    }
    none = exposure.loss(table[table["client"] == 1])
    assert none["clients"] == 0
    assert np.isnan(none["seen"])


def test_clusters_that_were_asked_for_are_those_of_the_ledger(groupings):
    assert profiles.asked_clusters(groupings, "other") == 4
    assert profiles.asked_clusters(groupings, "") == 1


# ---- Drawings -----------------------------------------------------------------------------------


def test_cells_are_listed_with_titles_methods_and_published_numbers():
    columns, rows = {"c": {"title": "Label skew"}}, {"r": {"title": "REPA, SAE"}}
    cell = {"table": "t", "column": "c", "row": "r", "run": "", "grouping": "g"}
    listed = drawings.listed([cell | {"published": {"SE": 0.02}}], columns, rows)
    about = {"group": "Label skew", "title": "REPA, SAE", "method": "REPA", "row": "r"}
    assert listed.to_dict("records") == [about | {"run": "", "grouping": "g", "SE": 0.02}]


@pytest.mark.parametrize(
    "places", [[0.5, 0.52, 0.9, 0.51], [0.1, 0.1, 0.1], [0.0, 1.0], [0.99, 0.9, 1.0, 0.2]]
)
def test_names_are_moved_as_little_as_possible(places):
    found = drawings.spread(places, 0.1)
    order = np.argsort(places, kind="stable")
    gaps = [
        {"type": "ineq", "fun": lambda x, low=low, high=high: x[high] - x[low] - 0.1}
        for low, high in pairwise(order)
    ]
    start, inside = np.argsort(order) / len(places), [(0, 1)] * len(places)

    def away(x):
        return ((x - places) ** 2).sum()

    best = minimize(away, start, bounds=inside, constraints=gaps, tol=1e-12)
    np.testing.assert_allclose(found, best.x, atol=1e-4)


def test_more_names_than_there_is_room_for_are_kept_apart_all_the_same():
    assert drawings.spread([0.5] * 5, 0.5) == pytest.approx([0, 0.5, 1, 1.5, 2])


def test_limits_show_the_last_three_quarters_of_all_curves():
    table = pd.DataFrame({"round": [0, 3, 10] * 2, "weighted": [0, 50, 80, 1, 30, 70]})
    low, high = drawings.limits(table)
    assert 20 < low < 30
    assert 80 < high < 90


def test_a_name_without_a_place_stands_at_the_bottom():
    assert drawings.spread([0.5, float("nan")], 0.1) == pytest.approx([0.5, 0.0])
    assert drawings.spread([], 0.1) == []


def test_variants_of_a_method_share_its_colour_and_nothing_else():
    looks = drawings.styles(["REPA 10", "WD 10", "REPA 30", "FedAvg"])
    assert looks["REPA 10"]["color"] == looks["REPA 30"]["color"]
    assert len({look["color"] for look in looks.values()}) == 3
    for part in ("linestyle", "marker"):
        assert looks["REPA 10"][part] != looks["REPA 30"][part]
    assert looks["REPA 10"]["linestyle"] == looks["WD 10"]["linestyle"]
    assert looks["REPA 10"]["marker"] != looks["WD 10"]["marker"]


def test_curves_are_means_over_seeds_within_a_band():
    rows = [("WD", 0, 1, 2.0), ("WD", 1, 1, 4.0), ("WD", 0, 2, 5.0), ("WD", 1, 2, 9.0)]
    table = pd.DataFrame(rows, columns=["curve", "seed", "round", "r"])
    _, axes = panels(1, 1, 3.4, 2.6)
    axis = axes[0, 0]
    drawings.draw_curves(axis, table, "round", "r", drawings.styles(["WD", "FedAvg"]))
    (line,) = axis.get_lines()
    assert line.get_xydata().tolist() == [[1, 3], [2, 7]]
    (band,) = axis.collections
    edges = {tuple(point) for point in band.get_paths()[0].vertices.tolist()}
    assert {(1, 2), (1, 4), (2, 5), (2, 9)} <= edges
    axis.plot([1, 2], [8.0, np.nan], label="lost")
    drawings.name_ends(axis)
    low, high = axis.get_ylim()
    assert axis.texts[1].get_position()[1] == pytest.approx((8 - low) / (high - low))
    axis.texts[1].remove()
    assert [text.get_text() for text in axis.texts] == ["WD"]


CHOICES = [("vectors: WD", "usual"), ("vectors: WD", "other"), ("weight: REPA", "usual")]


def test_questions_stand_above_their_choices_and_apart_from_the_block_before():
    found = choices.heights(CHOICES)
    assert list(found.values()) == sorted(found.values())
    assert found["vectors: WD", "other"] - found["vectors: WD", "usual"] == 1
    assert found["weight: REPA", ""] - found["vectors: WD", "other"] > 1
    assert len(found) == 5


def test_choices_are_means_in_the_colour_of_their_method_with_a_line_at_the_usual_one():
    rows = [(*CHOICES[0], 0, 1.0), (*CHOICES[0], 1, 3.0), (*CHOICES[1], 0, 9.0)]
    rows.append((*CHOICES[2], 0, float("nan")))
    table = pd.DataFrame(rows, columns=["question", "choice", "seed", "r"])
    figure, axes = choices.panels([CHOICES])
    axis, places = axes[0, 0], choices.heights(CHOICES)
    choices.draw(axis, table, CHOICES, "r")
    lines = [line.get_xydata().tolist() for line in axis.get_lines()]
    usual, other = places[CHOICES[0]], places[CHOICES[1]]
    span = [[2, usual - 0.4], [2, other + 0.4]]
    bars = [[[1, usual], [3, usual]], [[9, other], [9, other]]]
    assert lines == [bars[0], [[2, usual]], span, bars[1], [[9, other]]]
    assert {line.get_color() for line in axis.get_lines()} == {drawings.colour_of("WD"), "#999999"}
    choices.name_rows(axis, CHOICES)
    assert [text.get_text() for text in axis.texts][:2] == ["vectors: WD", "usual"]
    choices.legend(figure)
    filled, empty, *_ = figure.legends[0].legend_handles
    assert (filled.get_markerfacecolor(), empty.get_markerfacecolor()) == (choices._KEY, "white")


def test_rows_show_every_seed_their_mean_and_what_is_published():
    rows = [("WD", 0, 0.2, 0.25, 0.1), ("WD", 1, 0.4, 0.25, 0.1), ("REPA", 0, 0.9, 0.91, 0.02)]
    table = pd.DataFrame(rows, columns=["name", "seed", "r", "published", "published error"])
    _, axes = panels(1, 1, 3.4, 2.6)
    drawings.draw_published(axes[0, 0], table, "r")
    assert [label.get_text() for label in axes[0, 0].get_yticklabels()] == ["WD", "REPA"]
    marked = [line.get_xdata().tolist() for line in axes[0, 0].get_lines() if len(line.get_xdata())]
    for expected in ([0.2, 0.4], [pytest.approx(0.3)], [0.25], [0.9], [0.91]):
        assert expected in marked
    drawings.draw_published(panels(1, 1, 3.4, 2.6)[1][0, 0], table[["name", "seed", "r"]], "r")


def test_similarities_are_ordered_by_group_with_borders_between():
    values, groups = np.arange(16.0).reshape(4, 4), np.array([1, 0, 1, 0])
    _, axes = panels(1, 1, 3.4, 2.6)
    drawings.draw_similarity(axes[0, 0], values, groups)
    (image,) = axes[0, 0].get_images()
    order = [1, 3, 0, 2]
    assert image.get_array().tolist() == [[values[i, j] for j in order] for i in order]
    assert image.get_clim() == (1, 14)
    assert next(line.get_ydata()[0] for line in axes[0, 0].get_lines()) == 1.5
