"""The toy problems and illustrations of CFL: Figs. 1, 2, arXiv Figs. 10 to 12, the index bug."""

import numpy as np
import pandas as pd
import pytest

from clustered_fl.randomness import generator
from clustered_fl.theory.cfl import geometry
from clustered_fl.theory.cfl.demo_index_bug import index_bug, recursion
from clustered_fl.theory.cfl.geometry import circle_predicates, circular_gaps, proof_illustrations
from clustered_fl.theory.cfl.paths import Bowls, Discs, Problem, descend, optimisation_paths
from clustered_fl.theory.cfl.violations import (
    assumption_violations,
    best_line,
    client_gradients,
    logistic_line,
    scores,
)

SEEDS = (0, 1, 2)


@pytest.fixture(scope="module", params=SEEDS)
def violations(request):
    return assumption_violations(request.param)


@pytest.fixture(scope="module", params=SEEDS)
def paths(request):
    return optimisation_paths(request.param, grid_points=31)


def accuracies(tables, panel, model):
    return tables["accuracies"].query(f"panel == '{panel}' and model == '{model}'")["accuracy"]


def test_one_line_serves_congruent_groups(violations):
    assert accuracies(violations, "congruent", "joint").min() >= 0.99


@pytest.mark.parametrize(("panel", "ceiling"), [("xor", 0.80), ("diverging conditionals", 0.55)])
def test_no_line_serves_incongruent_groups(violations, panel, ceiling):
    joint = violations["accuracies"].query(f"panel == '{panel}' and group == 'all'")
    assert sorted(joint["model"]) == ["best joint", "joint"]
    assert joint["accuracy"].max() <= ceiling
    assert accuracies(violations, panel, "own").min() >= 0.99


def test_gradients_at_the_joint_optimum_separate_incongruent_groups(violations):
    separation = violations["separation"].set_index("panel")
    incongruent = separation.loc[["xor", "diverging conditionals"]]
    assert (incongruent["gap"] > 1.5).all()
    assert incongruent["correct"].all()
    assert (incongruent["max_gradient_norm"] > 0.3).all()
    assert separation.loc["congruent", "max_gradient_norm"] < 0.01
    assert (separation["mean_gradient_norm"] < 1e-4).all()


def test_tables_describe_the_same_points(violations):
    points = violations["points"]
    assert points.groupby(["panel", "group"])["client"].nunique().eq(5).all()
    for (panel, model, group), line in violations["lines"].groupby(["panel", "model", "group"]):
        chosen = points.query(f"panel == '{panel}'")
        if group != "all":
            chosen = chosen.query(f"group == {group}")
        weights = line[["weight1", "weight2", "bias"]].to_numpy()[0]
        right = ((scores(chosen, weights) > 0) == chosen["label"]).mean()
        where = f"panel == '{panel}' and model == '{model}' and group == '{group}'"
        assert violations["accuracies"].query(where)["accuracy"].item() == right


@pytest.fixture
def few_points():
    random = np.random.default_rng(3)
    group = np.arange(14) % 2
    columns = {"x1": random.standard_normal(14), "x2": random.standard_normal(14)}
    labels = {"label": random.integers(0, 2, 14), "group": group, "client": group}
    return pd.DataFrame(columns | labels)


def test_best_line_beats_every_line_through_a_grid(few_points):
    def accuracy(line):
        return ((scores(few_points, line) > 0) == few_points["label"]).mean()

    grid = [
        accuracy(np.array([np.cos(angle), np.sin(angle), bias]))
        for angle in np.linspace(0, 2 * np.pi, 46)
        for bias in np.linspace(-3, 3, 31)
    ]
    best = accuracy(best_line(few_points))
    assert best >= max(grid)
    assert best > accuracy(logistic_line(few_points))


def test_client_gradients_are_slopes_of_the_logistic_loss(few_points):
    line = np.array([0.4, -1.1, 0.3])

    def loss(line, client):
        own = few_points[few_points["client"] == client]
        sign = 2 * own["label"] - 1
        return np.log1p(np.exp(-sign * scores(own, line))).mean()

    found = client_gradients(few_points, line).set_index("client")
    for client in (0, 1):
        for number, name in enumerate(["weight1", "weight2", "bias"]):
            step = 1e-6 * np.eye(3)[number]
            slope = (loss(line + step, client) - loss(line - step, client)) / 2e-6
            assert found.loc[client, name] == pytest.approx(slope, abs=1e-6)


CENTRES = np.array([[-1.0, 0.0], [1.0, 0.5]])
CURVATURE = np.array([[[1.2, 0.2], [0.2, 1.0]], [[1.0, -0.3], [-0.3, 1.4]]])


@pytest.mark.parametrize("risks", [Bowls(CENTRES, CURVATURE), Discs(CENTRES, 1.2)])
def test_gradients_are_slopes_of_the_risks(risks):
    for theta in np.random.default_rng(0).uniform(-3, 3, (20, 2)):
        step = 1e-6 * np.eye(2)
        slopes = (risks.risks(theta + step) - risks.risks(theta - step)) / 2e-6
        np.testing.assert_allclose(risks.gradients(theta), slopes.T, atol=1e-5)


def test_gradient_vanishes_within_the_disc():
    discs = Discs(CENTRES, 1.2)
    assert (discs.gradients(np.array([-1.0, 0.0]))[0] == 0).all()
    assert discs.risks(np.array([0.0, 0.25])).tolist() == [0, 0]


def test_descent_reaches_the_weighted_mean_of_the_centres():
    risks = Bowls(CENTRES, np.array([np.eye(2), 3 * np.eye(2)]))
    problem = Problem("", risks, np.array([0, 1]), np.array([5.0, 5.0]))
    path = descend(problem, learning_rate=0.1, rounds=200)
    assert len(path) == 201
    np.testing.assert_allclose(path[-1], (CENTRES[0] + 3 * CENTRES[1]) / 4, atol=1e-6)


def test_incongruent_groups_end_opposed(paths):
    cosines = paths["cosines"].query("problem == 'four clients'")
    last = cosines[cosines["round"] == 200]
    first = cosines[cosines["round"] == 0]
    assert (last.loc[last["relation"] == "cross", "cosine"] <= -0.9).all()
    assert (first.loc[first["relation"] == "cross", "cosine"] > 0).all()
    assert (cosines.loc[cosines["relation"] == "intra", "cosine"] >= 0.8).all()
    assert cosines.groupby("relation").size().to_dict() == {"cross": 4 * 201, "intra": 2 * 201}


@pytest.mark.parametrize("problem", ["four clients", "incongruent"])
def test_norms_tell_incongruent_groups(paths, problem):
    norms = paths["norms"].query(f"problem == '{problem}'").set_index("round")
    mean, largest = norms["mean_gradient_norm"], norms["max_gradient_norm"]
    assert mean[200] < 1e-3 * mean[0]
    assert largest[200] > 10 * mean[200]


def test_norms_tell_congruent_groups(paths):
    norms = paths["norms"].query("problem == 'congruent'").set_index("round")
    assert norms["mean_gradient_norm"][200] < 1e-3 * norms["mean_gradient_norm"][0]
    assert norms["max_gradient_norm"][200] < 1e-3 * norms["max_gradient_norm"][0]


def test_only_the_congruent_landscape_has_a_grey_region(paths):
    landscape = paths["landscape"]
    grey = landscape.groupby("problem")["vanishes"].sum()
    assert grey["congruent"] > 0
    assert grey["incongruent"] == grey["four clients"] == 0
    assert (landscape.loc[landscape["vanishes"], "risk_mean"] == 0).all()
    assert landscape.groupby("problem").size().eq(31**2).all()


def test_noise_of_clients_depends_on_the_seed_only():
    first, again, other = (optimisation_paths(seed, grid_points=2) for seed in (1, 1, 2))
    assert all(first[name].equals(again[name]) for name in first)
    assert not first["clients"].equals(other["clients"])


@pytest.fixture(scope="module", params=SEEDS)
def illustrations(request):
    return proof_illustrations(request.param, arrangements=200)


def test_illustrations_keep_what_the_proof_says(illustrations):
    predicates = illustrations["predicates"]
    assert predicates.groupby("figure").size().to_dict() == {"fig10": 1, "fig11": 3, "fig12": 3}
    assert predicates["violations"].sum() == 0
    assert (predicates.loc[predicates["figure"] == "fig12", "trials"] == 5 * 200).all()


def test_figure_10_has_zero_sum_small_noise_and_a_gap(illustrations):
    arrows = illustrations["arrows"].query("figure == 'fig10'")
    true = arrows.query("kind == 'true'")[["to1", "to2"]].to_numpy()
    np.testing.assert_allclose(true.sum(axis=0), 0, atol=1e-12)
    noise = arrows.query("kind == 'noise'")
    start, end = noise[["from1", "from2"]].to_numpy(), noise[["to1", "to2"]].to_numpy()
    assert (np.linalg.norm(end - start, axis=1) < 0.36 * np.linalg.norm(start, axis=1)).all()
    angles = illustrations["angles"].query("figure == 'fig10'")
    widest = angles.loc[angles["role"] == "within", "degrees"].max()
    assert angles.loc[angles["role"] == "cut", "degrees"].item() > widest


def test_angles_are_those_between_the_named_arrows(illustrations):
    ends = illustrations["arrows"].set_index(["figure", "name"])[["to1", "to2"]]
    for row in illustrations["angles"].itertuples():
        first, second = (ends.loc[(row.figure, name)] for name in (row.first, row.second))
        turn = np.degrees(np.arctan2(*second[::-1]) - np.arctan2(*first[::-1])) % 360
        assert row.degrees == pytest.approx(min(turn, 360 - turn), abs=1e-6)


def test_tangent_turns_farthest(illustrations):
    sweep = illustrations["sweep"]
    assert sweep["degrees"].max() == pytest.approx(30, abs=0.01)
    assert sweep["degrees"].max() <= 30
    angles = illustrations["angles"].query("figure == 'fig11'").set_index("role")
    assert angles.loc["widest", "degrees"] == pytest.approx(30 + np.degrees(np.arcsin(0.35)))


def test_gaps_go_around_the_circle():
    angles = np.radians([[-170, -60, 20, 150]])
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=2)
    np.testing.assert_allclose(np.degrees(circular_gaps(vectors)), [[110, 80, 130, 40]])


def test_circle_predicates_notice_vectors_that_do_not_sum_to_zero(monkeypatch):
    def lopsided(random, trials, vectors):
        angles = np.sort(random.uniform(0, 1, (trials, vectors)), axis=1)
        return np.stack([np.cos(angles), np.sin(angles)], axis=2)

    monkeypatch.setattr(geometry, "_arrangements", lopsided)
    table = circle_predicates(generator(0, "x"), 5, 20)
    assert (table["violations"].iloc[1:] == 60).all()


def test_index_bug_loses_clients_from_the_second_split_on():
    splits = index_bug(0, trials=30)["splits"]
    shuffled = splits.query("order == 'shuffled'")
    correct = shuffled.query("rule == 'correct'")
    assert (correct[["lost", "duplicated"]] == 0).all(axis=None)
    assert correct.loc[correct["split"] == 3, "recovered"].all()
    demo = shuffled.query("rule == 'demo'")
    assert (demo.loc[demo["split"] <= 1, ["lost", "duplicated"]] == 0).all(axis=None)
    assert (demo.loc[demo["split"] >= 2, ["lost", "duplicated"]] > 0).all(axis=None)
    assert not demo["recovered"].any()


def test_index_bug_by_hand():
    # Four groups of two on a line through the origin and its normal: 0, 1 | 2, 3 | 4, 5 | 6, 7.
    centres = np.array([[10, 0], [8, 3], [-10, 0], [-8, 3]])
    group = np.repeat([2, 0, 3, 1], 2)
    minima = centres[group] + np.tile([[0.0, 0.1], [0.0, -0.1]], (4, 1))
    correct, demo = (recursion(minima, group, rule) for rule in ("correct", "demo"))
    for states in (correct, demo):
        assert [members.tolist() for members in states[1]] == [[0, 1, 4, 5], [2, 3, 6, 7]]
    assert [members.tolist() for members in correct[2]] == [[0, 1], [4, 5], [2, 3, 6, 7]]
    assert [members.tolist() for members in demo[2]] == [[0, 1], [2, 3], [2, 3, 6, 7]]
    assert [members.tolist() for members in demo[3]] == [[0, 1], [2, 3], [0, 1], [2, 3]]


def test_members_are_listed_for_the_first_trial():
    tables = index_bug(0, trials=2, groups=3, clients_per_group=2)
    members, splits = tables["members"], tables["splits"]
    for row in splits.query("trial == 0").itertuples():
        where = f"order == '{row.order}' and rule == '{row.rule}' and split == {row.split}"
        held = members.query(where)
        assert held["cluster"].nunique() == row.clusters
        assert 6 - held["client"].nunique() == row.lost
