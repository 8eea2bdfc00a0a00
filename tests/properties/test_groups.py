"""What must hold for the bipartition and the gap of every similarity matrix."""

import numpy as np
import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st

from clustered_fl.methods.groups import (
    bipartition,
    cosine_similarity,
    intra_min,
    is_correct,
    scores,
)
from clustered_fl.theory.cfl.literal import exhaustive_bipartition, literal_algorithm
from clustered_fl.theory.cfl.spanning import undivided, weakest_links, weakest_within

# Multiples of 1/64 are exact in floating point, and few enough to be tied often.
STEPS = 64


@st.composite
def similarities(draw, least=2, most=8, levels=STEPS):
    clients = draw(st.integers(least, most))
    pairs = clients * (clients - 1) // 2
    level = st.integers(-levels, levels)
    values = draw(st.lists(level, min_size=pairs, max_size=pairs))
    upper = np.zeros((clients, clients))
    upper[np.triu_indices(clients, k=1)] = np.array(values) / levels
    return upper + upper.T + np.eye(clients)


@st.composite
def grouped(draw):
    matrix = draw(similarities(least=3))
    groups = draw(st.lists(st.integers(0, 2), min_size=len(matrix), max_size=len(matrix)))
    return matrix, np.array(groups)


@st.composite
def permuted(draw):
    matrix, groups = draw(grouped())
    return matrix, groups, np.array(draw(st.permutations(range(len(matrix)))))


def as_sets(split):
    return {frozenset(split.first.tolist()), frozenset(split.second.tolist())}


def best_splits(matrix):
    """All bipartitions with the smallest cross similarity, the slow way."""
    clients = len(matrix)
    cuts = {}
    for number in range(1, 2 ** (clients - 1)):
        away = {i + 1 for i in range(clients - 1) if number >> i & 1}
        home = set(range(clients)) - away
        worst = max(matrix[i, j] for i in home for j in away)
        cuts[frozenset({frozenset(home), frozenset(away)})] = worst
    least = min(cuts.values())
    return least, [split for split, worst in cuts.items() if worst == least]


@given(similarities(), st.sampled_from(["single", "complete"]))
def test_bipartition_is_a_bipartition(matrix, criterion):
    split = bipartition(matrix, criterion)
    assert sorted([*split.first, *split.second]) == list(range(len(matrix)))
    assert split.first[0] == 0
    assert len(split.second) > 0
    assert (np.diff(split.first) > 0).all()
    assert (np.diff(split.second) > 0).all()
    assert split.cross_max == matrix[np.ix_(split.first, split.second)].max()


@pytest.mark.parametrize("rule", [bipartition, literal_algorithm, exhaustive_bipartition])
@given(matrix=similarities(levels=STEPS) | similarities(levels=2))
def test_bipartition_is_optimal_also_with_ties(rule, matrix):
    least, splits = best_splits(matrix)
    split = rule(matrix)
    assert split.cross_max == least
    assert as_sets(split) in splits


@given(similarities())
def test_complete_linkage_is_never_better(matrix):
    assert bipartition(matrix, "complete").cross_max >= bipartition(matrix).cross_max


@given(similarities() | similarities(levels=2))
def test_batched_bipartition_is_the_same(matrix):
    # Two matrices at once, so that a mix-up between trials shows.
    other = matrix[::-1, ::-1]
    least, splits = best_splits(matrix)
    cuts = weakest_links(np.stack([other, matrix]))
    halves = {frozenset(np.flatnonzero(cuts.first[1] == side).tolist()) for side in (True, False)}
    np.testing.assert_array_equal(cuts.similarity, [best_splits(other)[0], least])
    assert halves in splits


@given(permuted())
def test_order_of_clients_does_not_matter(case):
    matrix, groups, order = case
    shuffled = matrix[np.ix_(order, order)]
    assert bipartition(shuffled).cross_max == bipartition(matrix).cross_max
    if len(best_splits(matrix)[1]) == 1:
        renamed = {frozenset(order[list(half)].tolist()) for half in as_sets(bipartition(shuffled))}
        assert renamed == as_sets(bipartition(matrix))
    expected, found = scores(matrix, groups)["gap"], scores(shuffled, groups[order])["gap"]
    np.testing.assert_equal(found, expected)


@given(grouped(), st.permutations(range(3)))
def test_names_of_groups_do_not_matter(case, names):
    matrix, groups = case
    renamed = np.array(names)[groups]
    np.testing.assert_equal(scores(matrix, renamed)["gap"], scores(matrix, groups)["gap"])
    split = bipartition(matrix)
    assert is_correct(split, renamed) == is_correct(split, groups)


@given(similarities())
def test_only_the_order_of_similarities_matters_for_the_halves(matrix):
    assume(len(best_splits(matrix)[1]) == 1)
    squeezed = matrix / 4
    np.fill_diagonal(squeezed, 1.0)
    assert as_sets(bipartition(squeezed)) == as_sets(bipartition(matrix))


@given(grouped())
def test_positive_gap_implies_correct(case):
    matrix, groups = case
    # Closer together within groups, or the gap would hardly ever be positive.
    matrix = np.where(groups[:, None] == groups, (3 + matrix) / 4, matrix)
    if scores(matrix, groups)["gap"] > 0:
        event("positive")
        assert is_correct(bipartition(matrix), groups)


@given(similarities())
def test_pure_set_has_no_positive_gap(matrix):
    assert scores(matrix, np.zeros(len(matrix), dtype=int))["gap"] <= 0


@given(grouped())
def test_smallest_similarity_within_groups(case):
    matrix, groups = case
    within = [
        matrix[i, j]
        for i in range(len(matrix))
        for j in range(len(matrix))
        if i != j and groups[i] == groups[j]
    ]
    np.testing.assert_equal(intra_min(matrix, groups), min(within, default=np.nan))


@given(similarities(least=6, most=6), st.sampled_from([2, 3]))
def test_batched_measures_are_the_same(matrix, count):
    groups = np.repeat(np.arange(count), 6 // count)
    split = bipartition(matrix)
    first = np.isin(np.arange(6), split.first)
    assert weakest_within(matrix[None], count)[0] == intra_min(matrix, groups)
    assert undivided(first[None], count)[0] == is_correct(split, groups)


def test_converse_of_corollary_is_false():
    # Clients 0, 1 and 2 form a chain; its ends point away from each other.
    matrix = np.array([[1, 0.9, -0.5, 0], [0.9, 1, 0.9, 0], [-0.5, 0.9, 1, 0], [0, 0, 0, 1]])
    groups = np.array([0, 0, 0, 1])
    assert is_correct(bipartition(matrix), groups)
    assert scores(matrix, groups)["gap"] < 0


def test_all_tied_matrix_is_split_in_two():
    split = bipartition(np.ones((5, 5)))
    assert split.cross_max == 1
    assert len(split.first) + len(split.second) == 5


def test_one_client_has_no_bipartition():
    with pytest.raises(ValueError, match="two clients"):
        bipartition(np.ones((1, 1)))


def test_zero_update_has_no_direction():
    similarity = cosine_similarity(np.array([[1.0, 0.0], [0.0, 0.0], [2.0, 0.0]]))
    np.testing.assert_array_equal(similarity, [[1, 0, 1], [0, 0, 0], [1, 0, 1]])


@given(st.integers(0, 2**32 - 1))
def test_cosines_ignore_lengths_and_rotations(seed):
    random = np.random.default_rng(seed)
    updates = random.standard_normal((5, 4))
    lengths = 10.0 ** random.uniform(-3, 3, (5, 1))
    rotation = np.linalg.qr(random.standard_normal((4, 4))).Q
    similarity = cosine_similarity(updates)
    np.testing.assert_allclose(cosine_similarity(updates * lengths), similarity, atol=1e-12)
    np.testing.assert_allclose(cosine_similarity(updates @ rotation), similarity, atol=1e-12)
    np.testing.assert_allclose(np.diag(similarity), 1)
    np.testing.assert_array_equal(similarity, similarity.T)
