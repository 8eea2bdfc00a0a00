"""FLT's Theorem 2: optimisation and both sides of eq. (3) against loops, and what is found."""

import math

import numpy as np
import pytest

from clustered_fl.randomness import generator
from clustered_fl.theory.flt import descent as theorem_2
from clustered_fl.theory.flt.averaging_code import plain_average
from clustered_fl.theory.flt.descent import bracket, compared, descent, largest_step, movement, star
from clustered_fl.theory.flt.quadratics import (
    CASES,
    descend,
    first_models,
    quadratics,
    relatedness,
)

HOLDS = ("theorem_2_matched", "theorem_2_mismatched")
FAILS = (
    "theorem_2_printed_sum",
    "theorem_2_printed_start",
    "theorem_2_unequal_start",
    "theorem_2_overlapping",
    "theorem_2_star",
    "theorem_2_large_step",
)
GROUP = np.arange(6) % 2
STARTS = ("common", "best", "own")


@pytest.fixture(scope="module")
def study():
    return descent(0, federations=60)


def test_every_check_is_expected_to_hold_or_to_fail(study):
    assert sorted(study["checks"]["check"]) == sorted(HOLDS + FAILS)


@pytest.mark.parametrize("check", HOLDS)
def test_true_statement_is_not_violated(study, check):
    row = study["checks"].set_index("check").loc[check]
    assert row.trials > 0
    assert row.violations == 0


@pytest.mark.parametrize("check", FAILS)
def test_false_statement_is_violated(study, check):
    row = study["checks"].set_index("check").loc[check]
    assert 0 < row.violations <= row.trials
    assert row.value > 0


def test_check_notices_a_bracket_that_is_too_large(monkeypatch):
    monkeypatch.setattr(theorem_2, "bracket", lambda *sides: 3 * bracket(*sides))
    checks = descent(0, federations=20)["checks"].set_index("check")
    assert (checks.loc[list(HOLDS), "violations"] > 0).all()


def test_one_round_suffices_against_the_printed_start(study):
    table = study["federations"].query("case == 'matched' and rounds == 1")
    assert len(table) > 0
    assert (table["right_printed"] == 0).all()
    assert (table["left"] > 0).all()


def test_disjoint_groups_need_less_than_half_of_the_bound(study):
    table = study["federations"].query("case in ('matched', 'mismatched')")
    assert (table["left"] < table["right"] / 2).all()
    assert (table["left_printed"] / table["left"]).to_numpy() == pytest.approx(table["clients"])


def federation(case, seed=5):
    """One federation of six clients and two parameters, drawn as the study draws it."""
    random = generator(seed, "x")
    costs = quadratics(random, 1, GROUP, 2)
    averaging = plain_average(relatedness(random, CASES[case].averaging, 1, GROUP), np.ones(6))
    return random, costs, averaging, first_models(random, CASES[case].start, costs)


def literal_cost(costs, models):
    total = 0.0
    for curvature, minimum, model in zip(costs.curvature[0], costs.minima[0], models, strict=True):
        away = model - minimum
        total += away @ curvature @ away / 2
    return total


def literal_rounds(costs, averaging, models, step, rounds):
    """Algorithm 3 for one federation, client by client: movements and costs."""
    moved, cost = [], [literal_cost(costs, models)]
    for _ in range(rounds):
        local = []
        for i in range(len(models)):
            gradient = costs.curvature[0, i] @ (models[i] - costs.minima[0, i])
            local.append(models[i] - step * gradient)
        after = []
        for i in range(len(models)):
            relatives = [j for j in range(len(models)) if averaging[i, j] > 0]
            after.append(sum(local[j] for j in relatives) / len(relatives))
        moved.append(sum(((a - b) ** 2).sum() for a, b in zip(after, models, strict=True)))
        cost.append(literal_cost(costs, after))
        models = after
    return moved, cost


@pytest.mark.parametrize("case", CASES)
def test_descend_twin(case):
    _, costs, averaging, models = federation(case)
    path = descend(costs, averaging, models, np.array([0.1]), 4)
    moved, cost = literal_rounds(costs, averaging[0], models[0], 0.1, 4)
    np.testing.assert_allclose(path.moved[:, 0], moved)
    np.testing.assert_allclose(path.cost[:, 0], cost)


@pytest.mark.parametrize("case", CASES)
def test_both_sides_twin(case):
    row = compared(generator(5, "x"), CASES[case], 1, 6, 2, 2, 9).iloc[0]
    _, costs, averaging, models = federation(case)
    smooth = max(np.linalg.eigvalsh(each)[-1] for each in costs.curvature[0])
    moving = np.linalg.svd(np.eye(6) - averaging[0])[1].max()
    if moving < 1e-12:
        limit = 1 / smooth
    else:
        limit = (math.sqrt(1 + 4 * moving**2) - 1) / (2 * moving**2 * smooth)
    step, last = row.step * limit, int(row.rounds)
    moved, cost = literal_rounds(costs, averaging[0], models[0], step, last)
    denominator = 1 / (2 * step) - smooth / 2 - step / 2 * smooth**2 * moving**2
    assert row.left == pytest.approx(sum(moved) / (last * 6))
    assert row.left_printed == pytest.approx(sum(6 * moves for moves in moved) / (last * 6))
    assert row.right == pytest.approx((cost[0] - cost[-1]) / (last * 6) / denominator)
    assert row.right_printed == pytest.approx((cost[1] - cost[-1]) / (last * 6) / denominator)
    assert CASES[case].steps[0] < row.step < CASES[case].steps[1]


def test_gradient_and_best_model_by_differences():
    costs = quadratics(generator(1, "x"), 2, GROUP, 3)
    models = generator(2, "x").standard_normal(costs.minima.shape)
    gradients = costs.gradients(models)
    for client, number in [(0, 0), (5, 2)]:
        nudge = np.zeros_like(models)
        nudge[:, client, number] = 1e-6
        slope = (costs.cost(models + nudge) - costs.cost(models - nudge)) / 2e-6
        np.testing.assert_allclose(slope, gradients[:, client, number], atol=1e-6)
    best = np.repeat(costs.best_common()[:, None], 6, axis=1)
    np.testing.assert_allclose(costs.gradients(best).sum(axis=1), 0, atol=1e-9)
    assert (costs.cost(best) < costs.cost(best + 0.01)).all()


def test_minima_are_close_within_groups():
    minima = quadratics(generator(0, "x"), 200, GROUP, 2).minima
    within = np.linalg.norm(minima[:, 0] - minima[:, 2], axis=1).mean()
    across = np.linalg.norm(minima[:, 0] - minima[:, 1], axis=1).mean()
    assert within < 0.5 * across


def test_relatedness_of_every_kind():
    kinds = ("own", "others", "overlapping")
    own, others, overlapping = (relatedness(generator(0, "x"), kind, 40, GROUP) for kind in kinds)
    for related in (own, others, overlapping):
        assert set(np.unique(related)) == {0, 1}
        assert (related == related.swapaxes(1, 2)).all()
        assert (np.diagonal(related, axis1=1, axis2=2) == 1).all()
        np.testing.assert_allclose(plain_average(related, np.ones(6)).sum(axis=2), 1)
    assert (own == (GROUP[:, None] == GROUP[None, :])).all()
    assert (others.sum(axis=2) == 3).all()
    assert (others != own).any(axis=(1, 2)).mean() > 0.5
    # Averaging twice within groups is averaging once; over relatives it is not.
    for related, projects in [(own, True), (others, True), (overlapping, False)]:
        once = plain_average(related, np.ones(6))
        assert np.allclose(once @ once, once) == projects


def test_starts():
    _, costs, *_ = federation("matched")
    common, best, own = (first_models(generator(0, "x"), each, costs)[0] for each in STARTS)
    assert (common == common[0]).all()
    assert (best == best[0]).all()
    assert literal_cost(costs, best) < literal_cost(costs, common)
    assert len(np.unique(own[:, 0])) == 6


def test_step_of_groups_is_the_golden_ratio():
    averaging = plain_average(relatedness(generator(0, "x"), "own", 1, GROUP), np.ones(6))
    assert movement(averaging) == pytest.approx(1)
    assert largest_step(np.array([2.0]), movement(averaging)) == pytest.approx(0.618034 / 2)
    assert largest_step(np.array([2.0]), np.array([0.0])) == pytest.approx(1 / 2)


@pytest.mark.parametrize("moving", [0.0, 0.4, 1.0, 1.3])
def test_bracket_is_zero_at_the_largest_step(moving):
    smooth, moving = np.array([3.0]), np.array([moving])
    limit = largest_step(smooth, moving)
    assert bracket(limit, smooth, moving) == pytest.approx(0, abs=1e-12)
    assert bracket(0.99 * limit, smooth, moving) > 0 > bracket(1.01 * limit, smooth, moving)


def test_star_twin():
    table = star(4, 3, 0.1)
    models, minima, costs, moved = [0.25] * 4, [1, 0, 0, 0], [], [0.0]
    for _ in range(4):
        costs.append(sum((w - o) ** 2 / 2 for w, o in zip(models, minima, strict=True)))
        local = [w - 0.1 * (w - o) for w, o in zip(models, minima, strict=True)]
        after = [sum(local) / 4] + [(local[0] + local[i]) / 2 for i in (1, 2, 3)]
        moved.append(moved[-1] + sum((a - b) ** 2 for a, b in zip(after, models, strict=True)))
        models = after
    np.testing.assert_allclose(table["cost"], costs)
    averaging = np.array([[1, 1, 1, 1], [2, 2, 0, 0], [2, 0, 2, 0], [2, 0, 0, 2]]) / 4
    moving = np.linalg.norm(np.eye(4) - averaging, 2)
    denominator = 1 / 0.2 - 0.5 - 0.05 * moving**2
    right = [(costs[0] - costs[t]) / max(t, 1) / 4 / denominator for t in range(4)]
    np.testing.assert_allclose(table["right"], right)
    np.testing.assert_allclose(table["left"], [moved[t] / max(t, 1) / 4 for t in range(4)])


def test_star_is_dragged_to_the_mean_weighted_by_relatives():
    last = star(5, 20_000, 0.001).iloc[-1]
    # The hub has 5 relatives, the others 2 each, themselves counted.
    assert last.hub == pytest.approx(5 / 13, abs=0.002)
    assert last.cost > 0.4
