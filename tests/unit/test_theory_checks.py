"""The numerical checks of CFL's theory: they find what is false, and spare what is true."""

from itertools import combinations

import numpy as np
import pytest

from clustered_fl.methods.groups import bipartition, cosine_similarity, is_correct
from clustered_fl.randomness import generator
from clustered_fl.theory.cfl import criteria, lemmas, linkage, projections, theorem
from clustered_fl.theory.cfl.bounds import guaranteed_noise, noise_bound, separation_theorem
from clustered_fl.theory.cfl.checks import theorem_checks
from clustered_fl.theory.cfl.literal import exhaustive_bipartition, halves, literal_algorithm
from clustered_fl.theory.cfl.spanning import undivided, weakest_links
from clustered_fl.theory.search import cosine, in_ball, pooled, search, summarise


@pytest.fixture(scope="module")
def study():
    settings = {"starts": 40, "steps": 30, "trials": 60, "orthonormal_dimension": 200}
    return theorem_checks(0, **settings, groups=(2, 5, 10), gammas=(0.3, 0.7, 1.5))


HOLDS = (
    "theorem_1_intra",
    "theorem_1_cross",
    "remark_1",
    "remark_1_empirical",
    "lemma_2",
    "lemma_3_corrected",
    "lemma_4",
    "lemma_4_fan",
    "corollary_1",
    "criterion_36",
    "orthonormal_invariance",
    "algorithm_1_literal",
    "algorithm_1_single_linkage",
)
FAILS = (
    "theorem_1_own_pairs",
    "theorem_1_empirical",
    "theorem_1_counterexample",
    "lemma_3_printed",
    "corollary_1_converse",
    "projection_angles",
    "projection_cut",
)


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


def test_default_settings_try_lemma_4_often_enough():
    trials = 200 * (1 + 100) * len(lemmas.VECTORS) * len(lemmas.DIMENSIONS)
    assert trials >= 100_000


def test_search_finds_a_rare_violation():
    # Only within 0.01 of (3, 4): never at the start, but uphill all the way.
    def margin(state):
        return 0.01 - np.linalg.norm(state - [3.0, 4.0], axis=1)

    random, start = generator(0, "x"), np.zeros((5, 2))
    assert search(margin, start, random, steps=0) == (5, 0, pytest.approx(0.01 - 5))
    found = search(margin, start, random, steps=800)
    assert found.trials == 5 * 801
    assert found.violations > 0
    assert 0 < found.largest <= 0.01
    assert (start == 0).all()


def test_search_does_not_count_what_does_not_apply():
    counted = summarise(np.array([-np.inf, -1.0, 1e-12, 0.5]))
    assert counted == (3, 1, 0.5)
    nothing = summarise(np.array([-np.inf]))
    assert nothing.trials == 0
    assert np.isnan(nothing.largest)
    assert pooled([counted, nothing, counted]) == (6, 2, 0.5)


def test_vectors_are_mapped_into_the_ball():
    raw = np.array([[1e6, 0.0], [0.0, -0.1], [0.0, 0.0]])
    inside = in_ball(raw, np.array([2.0, 2.0, 2.0]))
    np.testing.assert_allclose(inside, [[2, 0], [0, -0.2 / 1.1], [0, 0]], atol=1e-5)
    assert (np.linalg.norm(inside, axis=1) < 2).all()
    assert cosine(raw[2], raw[1]) == 0


def test_lemma_2_notices_a_bound_that_is_too_high(monkeypatch):
    monkeypatch.setattr(lemmas, "noise_bound", lambda x, y: noise_bound(x, y) + 0.01)
    assert lemmas.lemma_2(generator(0, "x"), starts=50, steps=50).violations > 0


def test_lemma_4_search_comes_close_to_the_bound():
    assert -1e-2 < lemmas.lemma_4(generator(0, "x"), starts=20, steps=20).value < 0


@pytest.mark.parametrize("vectors", range(3, 9))
def test_fan_sums_to_zero_and_approaches_the_bound(vectors):
    previous = -np.inf
    for tilt in (1e-1, 1e-2, 1e-3):
        spread = lemmas.fan(vectors, tilt)
        np.testing.assert_allclose(spread.sum(axis=0), 0, atol=1e-12)
        cut = bipartition(cosine_similarity(spread)).cross_max
        margin = cut - np.cos(np.pi / (vectors - 1))
        assert previous < margin < 0
        previous = margin
    assert margin > -1e-3


def test_counterexample_is_promised_and_fails():
    table = theorem.counterexample(0.69)
    clients = table[["gradient1", "gradient2"]].to_numpy()
    true = table[["true1", "true2"]].to_numpy()
    groups = table["group"].to_numpy()
    ratios = np.linalg.norm(clients - true, axis=1) / np.linalg.norm(true, axis=1)
    np.testing.assert_allclose(ratios, 0.69)
    np.testing.assert_allclose(clients.sum(axis=0), 0, atol=1e-12)
    assert guaranteed_noise(2) > 0.69
    assert separation_theorem(ratios[None], 2).separates[0]
    split = exhaustive_bipartition(cosine_similarity(clients))
    assert not is_correct(split, groups)
    # Not a tie: every correct bipartition is worse.
    right = halves(cosine_similarity(clients), groups == 0)
    assert right.cross_max > split.cross_max + 1e-3
    # The picture is symmetric: either of the lower clients may be cut off.
    assert np.flatnonzero(table["half"] == 1).tolist() in [[3], [0, 2, 3]]


def test_counterexample_needs_much_noise():
    assert theorem.theorem_1_counterexample(0.69).violations == 1
    assert theorem.theorem_1_counterexample(0.6).violations == 0
    # Outside the green area nothing is promised, so that nothing is violated.
    assert theorem.theorem_1_counterexample(0.75).violations == 0


def test_own_pairs_reading_fails_on_a_plane_example():
    # q at 0 degrees without noise; p and r noisy, at 62 and 120: the best cut isolates q.
    angles = np.radians([0, 62, 120])
    clients = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    split = bipartition(cosine_similarity(clients))
    assert split.first.tolist() == [0]
    # The noisiest pair across that cut is (q, p): p lies asin(gamma) = 62 degrees off its group.
    assert split.cross_max > np.cos(np.pi - np.radians(62))
    # The noisiest pair of different groups is (p, r): 62 and 60 degrees off.
    assert split.cross_max <= np.cos(np.pi - np.radians(122))


def best_value(matrix):
    """Smallest possible similarity across a bipartition, by trying every subset."""
    clients = range(len(matrix))
    subsets = [set(s) for size in range(1, len(matrix)) for s in combinations(clients, size)]
    return min(
        max(matrix[i, j] for i in subset for j in clients if j not in subset) for subset in subsets
    )


@pytest.mark.parametrize("tied", [False, True])
def test_references_are_optimal(tied):
    random = generator(0, "references")
    for _ in range(25):
        matrix = linkage.random_similarity(random, tied=tied)[:7, :7]
        if len(matrix) > 1:
            assert exhaustive_bipartition(matrix).cross_max == best_value(matrix)
            assert literal_algorithm(matrix).cross_max == best_value(matrix)


def test_literal_algorithm_on_an_example_worked_by_hand():
    # Joined in turn: (1, 3) at .9, (0, 2) at .8, (0, 4) at .4: two sets are left.
    matrix = np.eye(5)
    for i, j, value in [(1, 3, 0.9), (0, 2, 0.8), (0, 4, 0.4), (3, 4, 0.3), (2, 4, 0.2)]:
        matrix[i, j] = matrix[j, i] = value
    split = literal_algorithm(matrix)
    assert split.first.tolist() == [0, 2, 4]
    assert split.second.tolist() == [1, 3]
    assert split.cross_max == 0.3


def test_optimality_check_notices_a_rule_that_is_not_optimal(monkeypatch):
    monkeypatch.setattr(linkage, "bipartition", lambda m: bipartition(m, "complete"))
    literal, single = linkage.optimality(generator(0, "x"), trials=60)
    assert literal.violations == 0
    assert single.violations > 0


def test_complete_linkage_differs_but_is_correct_at_low_noise():
    table = linkage.complete_linkage(generator(0, "x"), 150, 100, (0.3, 1.0)).set_index("gamma")
    # 43% of 300 instances in an independent simulation.
    assert table.loc[0.3, "p_differ"] == pytest.approx(0.43, abs=0.15)
    assert table.loc[1.0, "p_differ"] > table.loc[0.3, "p_differ"]
    assert (table[["p_correct_single", "p_correct_complete"]] == 1).all(axis=None)


def test_trust_counts_add_up():
    table = criteria.trust(0, 50, (2, 50), (2, 4), (0.3, 0.8, 1.2))
    assert len(table) == 2 * 2 * 3
    agree = table["positive"] - table["positive_incorrect"]
    assert (table["correct"] - table["correct_not_positive"] == agree).all()
    assert (table.loc[table["gamma"] > 1, "fires"] == 0).all()
    assert (table.loc[table["gamma"] == 0.3, "fires"] > 0).any()
    low = table.query("dimension == 2 and gamma == 1.2")
    assert (low["correct"] < 25).all()


def test_trust_checks_read_the_counts():
    table = criteria.trust(0, 20, (2,), (3,), (0.8,))
    table[["positive_incorrect", "fires_incorrect", "correct_not_positive"]] = [2, 3, 4]
    found = {check.check: check.violations for check in criteria.trust_checks(table)}
    assert found == {"corollary_1": 2, "criterion_36": 3, "corollary_1_converse": 4}


def test_projection_twin():
    """Eq. (96), pair by pair, for one dimension, with the projection matrix of eq. (93)."""
    random = generator(0, "x")
    narrower, moved = projections._project(random, 30, 5)
    vectors = generator(0, "x").standard_normal((30, 6, 5))
    shrunk, changed = [], []
    for own in vectors - vectors.mean(axis=1, keepdims=True):
        similarity = cosine_similarity(own)
        split = bipartition(similarity)
        i, j = max(
            ((i, j) for i in split.first for j in split.second), key=lambda pair: similarity[pair]
        )
        a = own[[i, j]].T
        flat = cosine_similarity(own @ (a @ np.linalg.inv(a.T @ a) @ a.T))
        others = [k for k in range(6) if k not in (i, j)]
        shrunk += [flat[k, m] > similarity[k, m] + 1e-9 for k, m in combinations(others, 2)]
        changed.append(abs(bipartition(flat).cross_max - split.cross_max) > 1e-9)
        assert flat[i, j] == pytest.approx(similarity[i, j])
    np.testing.assert_array_equal(narrower, shrunk)
    np.testing.assert_array_equal(moved, changed)


def test_rotation_check_notices_a_map_that_is_no_rotation(monkeypatch):
    class Stretch:
        Q = np.diag([1.0, 2.0, 3.0])

    monkeypatch.setattr(np.linalg, "qr", lambda matrix: Stretch)
    assert projections.orthonormal_invariance(generator(0, "x"), 3).violations > 0


def test_undivided_groups_by_hand():
    first = np.array([[1, 1, 0, 0], [1, 0, 1, 0], [1, 1, 1, 0]], dtype=bool)
    assert undivided(first, 2).tolist() == [True, False, False]
    assert undivided(first, 4).tolist() == [True, True, True]


def test_cut_of_two_clients():
    cuts = weakest_links(np.array([[[1.0, 0.3], [0.3, 1.0]]]))
    assert cuts.similarity.tolist() == [0.3]
    assert cuts.first.tolist() == [[True, False]]
