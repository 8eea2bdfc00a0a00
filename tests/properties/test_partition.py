"""What must hold for every partition: shares are disjoint, complete and reproducible."""

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from clustered_fl.data.dataset import build
from clustered_fl.data.label_maps import label_permutations, label_swaps
from clustered_fl.data.partitions import build_federation
from clustered_fl.data.shares import equal_shares, group_of_clients

SEEDS = st.integers(0, 2**32 - 1)
TRAIN, TEST, CLASSES = 60, 40, 6


def tiny_dataset(classes=CLASSES, train_rows=TRAIN):
    """One-pixel images; every class has equally many training and test rows, in random order."""
    rng = np.random.default_rng(0)
    halves = [rng.permutation(np.arange(n) % classes) for n in (train_rows, TEST)]
    labels = np.concatenate(halves)
    pixels = np.zeros((len(labels), 1, 1, 1), dtype=np.uint8)
    return build("tiny", "builtin", pixels, labels, train_rows, tuple("abcdefghij"[:classes]))


DATASET = tiny_dataset()


def flat(arrays):
    return np.concatenate(list(arrays)).tolist()


@st.composite
def shares(draw):
    clients = draw(st.integers(1, 9))
    total = draw(st.integers(clients, 60))
    return clients, np.arange(100, 100 + total), draw(st.integers(1, total // clients))


@given(shares(), SEEDS)
def test_shares_are_disjoint_parts_of_the_rows_of_the_size_asked_for(case, seed):
    clients, rows, samples = case
    found = equal_shares(rows, clients, samples, np.random.default_rng(seed))
    assert [len(share) for share in found] == [samples] * clients
    assert len(set(flat(found))) == samples * clients
    assert set(flat(found)) <= set(rows.tolist())


@given(shares(), SEEDS)
def test_smaller_shares_are_the_beginnings_of_the_whole_ones(case, seed):
    clients, rows, samples = case
    some = equal_shares(rows, clients, samples, np.random.default_rng(seed))
    whole = equal_shares(rows, clients, None, np.random.default_rng(seed))
    assert {len(share) for share in whole} == {len(rows) // clients}
    for part, share in zip(some, whole, strict=True):
        np.testing.assert_array_equal(part, share[:samples])


@given(SEEDS)
def test_shares_are_random_draws(seed):
    rows = np.arange(50)
    one, other = (
        flat(equal_shares(rows, 5, None, np.random.default_rng(s))) for s in (seed, seed + 1)
    )
    assert one != sorted(one)
    assert one != other


@given(st.integers(1, 40), st.data())
def test_groups_are_contiguous_blocks_of_nearly_equal_size(clients, data):
    groups = data.draw(st.integers(1, clients))
    found = group_of_clients(clients, groups)
    assert found.tolist() == sorted(found)
    sizes = np.bincount(found, minlength=groups)
    assert len(sizes) == groups
    assert sizes.max() - sizes.min() <= 1
    assert sizes.sum() == clients


@st.composite
def swaps(draw):
    """Labels, groups and some disjoint pairs that are given."""
    groups = draw(st.integers(1, 5))
    classes = draw(st.integers(2 * groups, 12))
    order = draw(st.permutations(range(classes)))
    given_pairs = draw(st.integers(0, classes // 2))
    return classes, groups, [order[2 * i : 2 * i + 2] for i in range(given_pairs)]


@given(swaps(), SEEDS)
def test_swaps_are_disjoint_involutions_that_keep_the_first_pairs(case, seed):
    classes, groups, first = case
    maps = label_swaps(classes, groups, first, np.random.default_rng(seed))
    assert maps.shape == (groups, classes)
    moved = [np.flatnonzero(labels != np.arange(classes)).tolist() for labels in maps]
    for labels, pair in zip(maps, moved, strict=True):
        assert len(pair) == 2
        np.testing.assert_array_equal(labels[labels], np.arange(classes))
    assert len({label for pair in moved for label in pair}) == 2 * groups
    for pair, asked in zip(moved, first, strict=False):
        assert pair == sorted(asked)


def test_pairs_that_are_not_given_differ_between_seeds():
    drawn = {label_swaps(10, 2, [(1, 7)], np.random.default_rng(s)).tobytes() for s in range(20)}
    assert len(drawn) > 5


@given(st.integers(1, 12), st.integers(1, 5), SEEDS)
def test_permutations_are_permutations(classes, groups, seed):
    maps = label_permutations(classes, groups, np.random.default_rng(seed))
    assert maps.shape == (groups, classes)
    np.testing.assert_array_equal(np.sort(maps, axis=1), np.tile(np.arange(classes), (groups, 1)))


def test_groups_are_permuted_independently():
    maps = label_permutations(10, 4, np.random.default_rng(0))
    assert len({labels.tobytes() for labels in maps}) == 4


@st.composite
def relabelled(draw):
    """Kind and settings of a federation whose groups call the classes differently."""
    groups = draw(st.integers(1, 3))
    clients = draw(st.integers(groups, 8))
    settings = {
        "clients": clients,
        "groups": groups,
        "samples": draw(st.none() | st.integers(1, TRAIN // clients)),
        "newcomers": draw(st.integers(0, TEST // (2 * groups))),
    }
    return draw(st.sampled_from(["label_swap", "label_permutation"])), settings


@given(relabelled(), SEEDS)
def test_no_client_trains_on_rows_of_another_or_of_a_test(case, seed):
    kind, settings = case
    federation = build_federation(DATASET, seed, kind, **settings)
    held = flat(federation.train)
    assert len(set(held)) == len(held)
    trained = flat(federation.train[: federation.clients])
    assert max(trained) < TRAIN
    for client in range(len(federation.train)):
        test = federation.test_sets[federation.test_of[client]]
        assert min(test) >= TRAIN
        assert not set(test.tolist()) & set(federation.train[client].tolist())


@given(relabelled(), SEEDS)
def test_newcomers_hold_test_rows_that_no_newcomer_is_tested_on(case, seed):
    kind, settings = case
    federation = build_federation(DATASET, seed, kind, **settings)
    joined = settings["groups"] if settings["newcomers"] else 0
    assert (federation.newcomers, federation.clients) == (joined, settings["clients"])
    assert federation.test_of.tolist() == [0] * federation.clients + [1] * joined
    np.testing.assert_array_equal(federation.test_sets[0], np.arange(TRAIN, TRAIN + TEST))
    if joined:
        event("newcomers")
        own = flat(federation.train[-joined:])
        assert set(federation.sizes[-joined:]) == {settings["newcomers"]}
        assert sorted([*own, *federation.test_sets[1]]) == list(range(TRAIN, TRAIN + TEST))
        assert federation.groups[-joined:].tolist() == list(range(joined))


@given(relabelled(), SEEDS)
def test_labels_are_a_matter_of_the_group(case, seed):
    kind, settings = case
    federation = build_federation(DATASET, seed, kind, **settings)
    maps = federation.label_maps
    assert maps.shape == (len(federation.train), CLASSES)
    for one, first in enumerate(federation.groups):
        for two, second in enumerate(federation.groups):
            if first == second:
                np.testing.assert_array_equal(maps[one], maps[two])
            elif kind == "label_swap":
                assert (maps[one] != maps[two]).sum() == 4


@given(relabelled(), SEEDS)
def test_the_number_of_samples_changes_nothing_but_the_number_of_samples(case, seed):
    kind, settings = case
    some = build_federation(DATASET, seed, kind, **settings)
    whole = build_federation(DATASET, seed, kind, **settings | {"samples": None})
    for part, share in zip(some.train, whole.train, strict=True):
        assert set(part.tolist()) <= set(share.tolist())
    for name in ("test_of", "label_maps", "groups"):
        np.testing.assert_array_equal(getattr(some, name), getattr(whole, name))
    for part, share in zip(some.test_sets, whole.test_sets, strict=True):
        np.testing.assert_array_equal(part, share)


KINDS = {
    "label_swap": {"clients": 5, "groups": 3, "newcomers": 2},
    "label_permutation": {"clients": 5, "groups": 3, "samples": 7},
    "congruent_pair": {"samples": 12},
    "topic_per_client": {"clients": 8, "held_out": 0.3},
}


def content(federation):
    arrays = [*federation.train, *federation.test_sets, federation.test_of, federation.label_maps]
    return [array.tolist() for array in [*arrays, federation.groups]]


@pytest.mark.parametrize("kind", KINDS)
@given(seed=SEEDS)
def test_a_seed_is_a_federation(kind, seed):
    one, again, other = (
        content(build_federation(DATASET, s, kind, **KINDS[kind])) for s in (seed, seed, seed + 1)
    )
    assert one == again
    assert one[0] != other[0]


@given(SEEDS, st.integers(CLASSES, 12), st.sampled_from([0.2, 0.5]))
def test_a_topic_is_shared_by_its_clients_only(seed, clients, held_out):
    settings = {"clients": clients, "held_out": held_out, "samples": 5}
    federation = build_federation(DATASET, seed, "topic_per_client", **settings)
    held = flat([*federation.train, *federation.test_sets])
    assert len(set(held)) == len(held) == 5 * clients
    assert max(held) < TRAIN
    assert federation.test_of.tolist() == list(range(clients))
    for client, group in enumerate(federation.groups):
        test = federation.test_sets[client]
        assert len(test) == round(5 * held_out)
        rows = [*federation.train[client], *test]
        assert set(DATASET.y[rows].tolist()) == {group}
