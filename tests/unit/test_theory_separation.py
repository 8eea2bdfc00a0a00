"""The separation theorem's bounds and the simulation of CFL's Fig. 3."""

import numpy as np
import pytest

from clustered_fl.methods.groups import (
    bipartition,
    cosine_similarity,
    is_correct,
    scores,
)
from clustered_fl.randomness import generator
from clustered_fl.theory.cfl.bounds import (
    cross_bound,
    guaranteed_noise,
    noise_bound,
    separation_theorem,
)
from clustered_fl.theory.cfl.gradients import draw_gradients
from clustered_fl.theory.cfl.separation import boundaries, separation_quality
from clustered_fl.theory.cfl.spanning import undivided, weakest_links, weakest_within


def literal_gradients(random, trials, groups, clients_per_group, dimension, noise):
    """The vectors behind `draw_gradients`, client by client: true gradients and noise."""
    centres = random.standard_normal((trials, groups, dimension))
    errors = random.standard_normal((trials, groups * clients_per_group, dimension))
    for trial in range(trials):
        v = [centres[trial, k] - centres[trial].mean(axis=0) for k in range(groups)]
        true = np.array([v[i // clients_per_group] for i in range(len(errors[trial]))])
        error = errors[trial].copy()
        ratios = [np.linalg.norm(error[i]) / np.linalg.norm(true[i]) for i in range(len(error))]
        for i in range(len(error)):
            error[i] /= ratios[i] if noise == "fixed" else max(ratios)
        yield true, error


@pytest.mark.parametrize("noise", ["fixed", "gauss"])
def test_inner_products_give_the_cosines_of_the_vectors(noise):
    size = {"trials": 3, "groups": 4, "clients_per_group": 3, "dimension": 7}
    drawn = draw_gradients(generator(1, "x"), **size, noise=noise)
    for gamma in (0.0, 0.4, 2.0):
        vectors = literal_gradients(generator(1, "x"), *size.values(), noise)
        for trial, (true, error) in enumerate(vectors):
            expected = cosine_similarity(true + gamma * error)
            np.testing.assert_allclose(drawn.similarity(gamma)[trial], expected, atol=1e-12)
            ratios = gamma * np.linalg.norm(error, axis=1) / np.linalg.norm(true, axis=1)
            np.testing.assert_allclose(drawn.ratios(gamma)[trial], ratios, atol=1e-12)


def test_gamma_is_the_largest_ratio_of_a_trial():
    size = {"trials": 5, "groups": 3, "clients_per_group": 2, "dimension": 10}
    fixed = draw_gradients(generator(0, "x"), **size, noise="fixed")
    gauss = draw_gradients(generator(0, "x"), **size, noise="gauss")
    np.testing.assert_allclose(fixed.ratios(0.7), 0.7)
    np.testing.assert_allclose(gauss.ratios(0.7).max(axis=1), 0.7)
    assert np.ptp(gauss.ratios(0.7)) > 0.1


@pytest.mark.parametrize(
    ("groups", "boundary"),
    [(2, 0.7071), (3, 0.3827), (4, 0.2588), (5, 0.1951), (10, 0.0872), (20, 0.0413)],
)
def test_green_boundary(groups, boundary):
    assert guaranteed_noise(groups) == pytest.approx(boundary, abs=5e-5)
    for gamma, inside in ((boundary - 2e-4, True), (boundary + 2e-4, False)):
        promise = separation_theorem(np.full((1, 2 * groups), gamma), groups)
        assert promise.separates.tolist() == [inside]


def test_bounds_are_those_of_added_angles():
    first, second = 0.3, 0.8
    turn = np.arcsin(first) + np.arcsin(second)
    assert noise_bound(first, second) == pytest.approx(np.cos(turn))
    assert cross_bound(noise_bound(0.1, 0.2), 4) == pytest.approx(
        np.cos(np.pi / 3 - np.arcsin(0.1) - np.arcsin(0.2))
    )
    assert cross_bound(noise_bound(first, second), 2) == pytest.approx(-np.cos(turn))
    assert cross_bound(noise_bound(first, second), 4) == 1


def test_theorem_takes_the_loosest_pair():
    ratios = np.random.default_rng(0).uniform(0, 0.4, (20, 9))
    promise = separation_theorem(ratios, 3)
    for trial, own in enumerate(ratios):
        pairs = [(i, j) for i in range(9) for j in range(i)]
        intra = min(noise_bound(own[i], own[j]) for i, j in pairs if i // 3 == j // 3)
        cross = max(
            cross_bound(noise_bound(own[i], own[j]), 3) for i, j in pairs if i // 3 != j // 3
        )
        assert promise.intra[trial] == pytest.approx(intra)
        assert promise.cross[trial] == pytest.approx(cross)


def test_theorem_is_silent_about_noise_above_the_signal():
    promise = separation_theorem(np.array([[0.1, 1.2, 0.1, 0.1]]), 2)
    assert not promise.applies[0]
    assert not promise.separates[0]


def test_batched_cuts_are_those_of_single_matrices():
    drawn = draw_gradients(
        generator(2, "x"), trials=40, groups=4, clients_per_group=5, dimension=20
    )
    similarity, groups = drawn.similarity(1.5), np.repeat(np.arange(4), 5)
    cuts = weakest_links(similarity)
    for trial, matrix in enumerate(similarity):
        split = bipartition(matrix)
        assert cuts.similarity[trial] == split.cross_max
        assert np.flatnonzero(cuts.first[trial]).tolist() == split.first.tolist()
        assert undivided(cuts.first, 4)[trial] == is_correct(split, groups)
    gaps = weakest_within(similarity, 4) - cuts.similarity
    expected = [scores(matrix, groups)["gap"] for matrix in similarity]
    np.testing.assert_allclose(gaps, expected, atol=1e-12)


def test_cells_count_what_a_loop_counts():
    settings = {"groups_max": 4, "gamma_max": 2.0, "gamma_step": 1.0, "trials": 30}
    cells = separation_quality(5, **settings, dimension=10, noises=["gauss"])["cells"]
    groups = np.repeat(np.arange(4), 3)
    random = generator(5, "separation_quality", 4)
    drawn = list(literal_gradients(random, 30, 4, 3, 10, "gauss"))
    for gamma in (1.0, 2.0):
        matrices = [cosine_similarity(true + gamma * error) for true, error in drawn]
        row = cells.query(f"groups == 4 and gamma == {gamma}").squeeze()
        gaps = [scores(matrix, groups)["gap"] > 0 for matrix in matrices]
        correct = [is_correct(bipartition(matrix), groups) for matrix in matrices]
        assert row.p_gap_positive == pytest.approx(np.mean(gaps))
        assert row.p_correct == pytest.approx(np.mean(correct))
    assert 0 < row.p_correct < 1


@pytest.fixture(scope="module")
def study():
    settings = {"groups_max": 10, "gamma_max": 2.0, "gamma_step": 0.25, "trials": 150}
    return separation_quality(0, **settings)


@pytest.mark.parametrize(
    ("noise", "gamma", "column", "expected"),
    [
        ("fixed", 1.0, "p_gap_positive", {2: 1, 3: 1, 4: 1, 5: 1, 10: 1}),
        ("fixed", 1.25, "p_gap_positive", {2: 1, 3: 1, 4: 1, 5: 1, 10: 0.965}),
        ("fixed", 1.5, "p_gap_positive", {2: 1, 3: 0.995, 4: 0.985, 5: 0.93, 10: 0.455}),
        ("fixed", 2.0, "p_gap_positive", {2: 0.915, 3: 0.635, 4: 0.305, 5: 0.13, 10: 0}),
        ("fixed", 1.5, "p_correct", {2: 1, 3: 1, 4: 1, 5: 0.995, 10: 0.95}),
        ("gauss", 1.25, "p_gap_positive", {2: 1, 3: 1, 4: 1, 5: 1, 10: 1}),
        ("gauss", 1.5, "p_gap_positive", {2: 1, 3: 1, 4: 0.995, 5: 1, 10: 0.935}),
        ("gauss", 2.0, "p_gap_positive", {2: 0.98, 3: 0.9, 4: 0.745, 5: 0.515, 10: 0.1}),
    ],
)
def test_probabilities_are_those_of_an_independent_simulation(
    study, noise, gamma, column, expected
):
    cells = study["cells"].query(f"noise == '{noise}' and gamma == {gamma}").set_index("groups")
    for groups, probability in expected.items():
        # Two estimates, of 150 and 200 trials; 3 standard deviations of their difference.
        spread = max(np.sqrt(probability * (1 - probability) * (1 / 150 + 1 / 200)), 0.008)
        assert abs(cells.loc[groups, column] - probability) <= 3 * spread


def test_theory_is_not_violated(study):
    cells = study["cells"]
    assert cells[["theorem_violations", "corollary_violations"]].to_numpy().sum() == 0
    fixed = cells[cells["noise"] == "fixed"]
    np.testing.assert_array_equal(fixed["p_guaranteed"], fixed["guaranteed"].astype(float))
    assert (fixed.loc[fixed["guaranteed"], ["p_gap_positive", "p_correct"]] == 1).all(axis=None)
    assert fixed["guaranteed"].sum() == 3 + 2 + 2 + 6
    assert (cells["p_correct"] >= cells["p_gap_positive"]).all()
    assert (cells["p_correct"] > cells["p_gap_positive"]).any()


def test_boundary_is_the_last_level_before_the_first_drop(study):
    cells = study["cells"].query("noise == 'fixed' and groups == 2").copy()
    cells["p_correct"] = [1, 1, 0.99, 0.9, 1, 1, 1, 1, 1]
    cells["p_gap_positive"] = 0.5
    row = boundaries(cells, 0.98).squeeze()
    assert row.gamma_correct == 0.5
    assert np.isnan(row.gamma_gap_positive)
    assert row.gamma_guaranteed == pytest.approx(np.sqrt(0.5))


def test_study_repeats_and_adding_groups_changes_nothing():
    settings = {"gamma_max": 1.0, "gamma_step": 0.5, "trials": 5, "dimension": 5}
    small = separation_quality(3, groups_max=3, **settings)["cells"]
    large = separation_quality(3, groups_max=4, **settings)["cells"]
    assert small.equals(large.query("groups <= 3").reset_index(drop=True))
    assert not small.equals(separation_quality(4, groups_max=3, **settings)["cells"])
