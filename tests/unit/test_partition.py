"""Partitions refuse what they cannot do; the ceiling of a single model is what a search finds."""

from itertools import product

import numpy as np
import pytest

from clustered_fl.data.label_maps import label_permutations, label_swaps, single_model_ceiling
from clustered_fl.data.shares import equal_shares, group_of_clients
from clustered_fl.errors import InputError


def best_single_model(maps):
    """Try every model, which for classes of images is every table of answers."""
    classes = maps.shape[1]
    return max(
        np.mean([answers[y] == labels[y] for labels in maps for y in range(classes)])
        for answers in product(range(classes), repeat=classes)
    )


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("clients", "classes"), [(1, 2), (2, 3), (3, 4), (5, 4), (4, 5)])
def test_ceiling_is_what_the_best_of_all_models_reaches(clients, classes, seed):
    maps = np.random.default_rng(seed).permuted(np.tile(np.arange(classes), (clients, 1)), axis=1)
    assert single_model_ceiling(maps) == pytest.approx(best_single_model(maps))


def test_ceiling_counts_clients_not_groups():
    # Three clients agree, so the fourth is outvoted on the two labels it swaps.
    maps = np.array([[0, 1, 2, 3]] * 3 + [[1, 0, 2, 3]])
    assert single_model_ceiling(maps) == pytest.approx((0.75 + 0.75 + 1 + 1) / 4)


def test_ceiling_at_its_ends():
    assert single_model_ceiling(np.tile(np.arange(10), (20, 1))) == 1
    cyclic = (np.arange(4)[:, None] + np.arange(10)) % 10
    assert single_model_ceiling(cyclic) == pytest.approx(0.25)


def test_ceiling_of_four_permutations_of_ten_labels_is_38_percent_on_average():
    rng = np.random.default_rng(0)
    found = [single_model_ceiling(label_permutations(10, 4, rng)) for _ in range(1000)]
    # Each label is an independent draw of four: the largest vote averages 1.534 of 4.
    assert np.mean(found) == pytest.approx(0.384, abs=0.005)
    assert np.std(found) == pytest.approx(0.048, abs=0.005)


def test_groups_of_twenty_clients_are_those_of_the_paper():
    assert group_of_clients(20, 4).tolist() == [0] * 5 + [1] * 5 + [2] * 5 + [3] * 5


def test_first_pairs_of_the_paper_come_first():
    maps = label_swaps(10, 4, [(1, 7), (3, 5)], np.random.default_rng(0))
    assert maps[0].tolist() == [0, 7, 2, 3, 4, 5, 6, 1, 8, 9]
    assert maps[1].tolist() == [0, 1, 2, 5, 4, 3, 6, 7, 8, 9]


@pytest.mark.parametrize("groups", [0, -1, 6])
def test_number_of_groups_is_told(groups):
    with pytest.raises(InputError) as caught:
        group_of_clients(5, groups)
    sentence = f"{groups} groups for 5 clients; allowed are 1 to the number of clients"
    assert str(caught.value) == sentence


@pytest.mark.parametrize("samples", [0, -3, 6])
def test_number_of_samples_is_told(samples):
    with pytest.raises(InputError) as caught:
        equal_shares(np.arange(21), 4, samples, np.random.default_rng(0))
    sentence = f"{samples} samples per client asked of 21 rows for 4 clients; allowed are 1 to 5"
    assert str(caught.value) == sentence


def test_more_clients_than_rows_is_told():
    with pytest.raises(InputError, match="0 samples per client asked of 3 rows for 4 clients"):
        equal_shares(np.arange(3), 4, None, np.random.default_rng(0))


def test_too_few_labels_to_swap_is_told():
    with pytest.raises(InputError) as caught:
        label_swaps(7, 4, [], np.random.default_rng(0))
    assert str(caught.value) == "label swap of 4 groups needs 8 labels, there are 7"


def test_first_pairs_that_share_a_label_are_told():
    with pytest.raises(InputError):
        label_swaps(10, 2, [(1, 7), (7, 1)], np.random.default_rng(0))


@pytest.mark.parametrize(("first", "groups"), [([(1, 7)], 2), ([(0, 1), (3, 99)], 1)])
def test_first_pairs_beyond_the_classes_are_told(first, groups):
    """Also those of groups that there are not."""
    with pytest.raises(InputError) as caught:
        label_swaps(6, groups, first, np.random.default_rng(0))
    sentence = f"label swap of {first}: allowed are different labels from 0 to 5"
    assert str(caught.value) == sentence


def test_more_pairs_than_groups_may_be_given():
    few, many = (
        label_swaps(6, 1, pairs, np.random.default_rng(0)) for pairs in ([(0, 1)], [(0, 1), (2, 3)])
    )
    assert few.tolist() == many.tolist() == [[1, 0, 2, 3, 4, 5]]
