"""FLT's four scenarios: what each client holds, against loops as the authors' code writes them."""

from dataclasses import replace

import numpy as np
import pytest
from refusals import told

from clustered_fl.data.dataset import build
from clustered_fl.data.federation import load, save
from clustered_fl.data.partitions import build_federation
from clustered_fl.data.partitions.structured import sizes
from clustered_fl.errors import InputError
from clustered_fl.randomness import generator
from clustered_fl.theory.flt.partition_code import coded_sizes

COUNTS = (31, 40, 25, 37, 28, 33, 29, 36, 24, 27)  # training images of each label
TRAIN = sum(COUNTS)


def images(counts=COUNTS, each_in_test=3, owner=None):
    """One-pixel images in random order, as many of each label as `counts` says."""
    rng = np.random.default_rng(0)
    train = rng.permutation(np.repeat(np.arange(len(counts)), counts))
    y = np.concatenate([train, rng.permutation(np.repeat(np.arange(len(counts)), each_in_test))])
    x = np.zeros((len(y), 1, 1, 1), dtype=np.uint8)
    names = tuple(f"label {number}" for number in range(len(counts)))
    return build("images", "builtin", x, y, len(train), names, owner=owner)


@pytest.fixture(scope="module")
def digits():
    return images()


def rows_with(dataset, label):
    return [row for row in range(dataset.train_rows) if dataset.y[row] == label]


def shuffled_rows(dataset, label, seed=0):
    """The rows of a label in the order in which they are dealt."""
    rng = generator(seed, "order of rows", label)
    return rng.permutation(rows_with(dataset, label)).tolist()


def labels_of(dataset, rows):
    return set(dataset.y[rows].tolist())


def everything(federation):
    parts = (federation.train, federation.test_sets)
    arrays = (federation.test_of, federation.label_maps, federation.groups, federation.replaces)
    return [[rows.tolist() for rows in part] for part in parts] + [a.tolist() for a in arrays]


def assert_tested_on_all_of(dataset, federation, labels):
    """Clients of group g are tested on every test image of `labels[g]`, by their own names."""
    for client, group in enumerate(federation.groups):
        expected = [
            row
            for row in range(dataset.train_rows, len(dataset.y))
            if dataset.y[row] in labels[group]
        ]
        assert federation.test_sets[federation.test_of[client]].tolist() == expected
    classes = np.arange(len(dataset.classes))
    np.testing.assert_array_equal(
        federation.label_maps, np.tile(classes, (len(federation.train), 1))
    )


# ---- Scenario 1: disjoint labels ----------------------------------------------------------------

DISJOINT = {"clients": 12, "groups": 4, "labels": 2}


def labels_by_group(dataset, federation):
    return [
        set().union(
            *(
                labels_of(dataset, federation.train[client])
                for client in np.flatnonzero(federation.groups == group)
            )
        )
        for group in range(federation.groups.max() + 1)
    ]


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_client_j_of_a_cluster_holds_block_j_of_each_of_its_labels(digits, seed):
    federation = build_federation(digits, seed, "disjoint_labels", **DISJOINT)
    assert federation.groups.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]
    held = labels_by_group(digits, federation)
    assert [len(labels) for labels in held] == [2] * 4
    assert len(set().union(*held)) == 8
    for client, group in enumerate(federation.groups):
        expected = []
        for label in held[group]:
            rows = shuffled_rows(digits, label, seed)
            size = len(rows) // 3
            expected += rows[client % 3 * size : (client % 3 + 1) * size]
        assert sorted(federation.train[client].tolist()) == sorted(expected)
    assert_tested_on_all_of(digits, federation, held)
    assert (federation.newcomers, federation.replaces.tolist()) == (0, [])


def test_no_client_holds_an_image_of_another(digits):
    federation = build_federation(digits, 0, "disjoint_labels", clients=11, groups=5)
    dealt = np.concatenate(federation.train)
    assert len(set(dealt.tolist())) == len(dealt)
    assert dealt.max() < TRAIN
    assert np.bincount(federation.groups).tolist() == [3, 2, 2, 2, 2]


def test_the_labels_of_a_cluster_depend_on_the_seed(digits):
    drawn = {
        str(labels_by_group(digits, build_federation(digits, s, "disjoint_labels", **DISJOINT)))
        for s in range(5)
    }
    assert len(drawn) > 3


def test_samples_cut_every_block(digits):
    federation = build_federation(digits, 0, "disjoint_labels", **DISJOINT, samples=5)
    assert federation.sizes.tolist() == [10] * 12
    for client, rows in enumerate(federation.train):
        for label in labels_of(digits, rows):
            block = shuffled_rows(digits, label)[client % 3 * 5 : (client % 3 + 1) * 5]
            assert [row for row in rows.tolist() if digits.y[row] == label] == block


def literal_padded(dataset, labels, place, clients, groups):
    """`sampling.py`, lines 57-99: lists filled up with -1, which means the last image."""
    per_label = dataset.train_rows // (clients * groups) // len(labels)
    rows = []
    for label in labels:
        places = np.full(10_000, -1)
        own = shuffled_rows(dataset, label)
        places[: len(own)] = own
        rows += places[place * per_label : (place + 1) * per_label].tolist()
    return [dataset.train_rows - 1 if row == -1 else row for row in rows]


def test_padded_blocks_are_those_of_the_code(digits):
    settings = {"clients": 15, "groups": 5, "labels": 2, "padded": True}
    federation = build_federation(digits, 0, "disjoint_labels", **settings)
    plain = build_federation(digits, 0, "disjoint_labels", **settings | {"padded": False})
    held, copies = labels_by_group(digits, plain), 0
    for client, group in enumerate(federation.groups):
        expected = literal_padded(digits, held[group], client % 3, 3, 5)
        assert sorted(federation.train[client].tolist()) == sorted(expected)
        copies += federation.train[client].tolist().count(TRAIN - 1)
    # 310 images make blocks of 10: labels with 25, 28, 29, 24 and 27 images lack 5, 2, 1, 6 and 3.
    assert set(federation.sizes) == {20}
    assert copies == 17 + (COUNTS[digits.y[-31]] <= 30)  # the last image itself may be dealt too
    assert_tested_on_all_of(digits, federation, held)


def test_newcomers_are_the_last_of_each_cluster_and_stand_at_the_end(digits):
    whole = build_federation(digits, 0, "disjoint_labels", **DISJOINT)
    federation = build_federation(digits, 0, "disjoint_labels", **DISJOINT, newcomers=1)
    assert (federation.clients, federation.newcomers) == (8, 4)
    order = [0, 1, 3, 4, 6, 7, 9, 10, 2, 5, 8, 11]
    assert [rows.tolist() for rows in federation.train] == [whole.train[i].tolist() for i in order]
    assert federation.groups.tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 0, 1, 2, 3]
    assert federation.replaces.tolist() == [-1] * 4
    assert_tested_on_all_of(digits, federation, labels_by_group(digits, whole))


@pytest.mark.parametrize("newcomers", [0, 1, 2])
def test_shuffled_clients_are_the_same_clients_in_another_order(digits, newcomers):
    settings = DISJOINT | {"newcomers": newcomers}
    whole = build_federation(digits, 0, "disjoint_labels", **DISJOINT)
    shuffled = build_federation(digits, 0, "disjoint_labels", **settings, shuffled=True)
    known = {
        tuple(rows.tolist()): group for rows, group in zip(whole.train, whole.groups, strict=True)
    }
    found = [tuple(rows.tolist()) for rows in shuffled.train]
    assert sorted(found) == sorted(known)
    assert shuffled.groups.tolist() == [known[rows] for rows in found]
    assert shuffled.groups.tolist() != sorted(shuffled.groups.tolist())
    late = shuffled.groups[shuffled.clients :]
    assert np.bincount(late, minlength=4).tolist() == [newcomers] * 4
    assert_tested_on_all_of(digits, shuffled, labels_by_group(digits, whole))
    other = build_federation(digits, 1, "disjoint_labels", **settings, shuffled=True)
    assert shuffled.groups.tolist() != other.groups.tolist()


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("newcomers", [0, 1])
def test_data_that_change_become_those_of_the_next_cluster(digits, newcomers, shuffled):
    settings = DISJOINT | {"newcomers": newcomers, "changed": 1, "shuffled": shuffled}
    federation = build_federation(digits, 0, "disjoint_labels", **settings)
    assert (federation.clients, federation.newcomers) == (12 - 4 * newcomers, 4 * newcomers + 4)
    dealt = np.concatenate(federation.train)
    assert len(set(dealt.tolist())) == len(dealt)
    held = labels_by_group(digits, federation)
    assert [len(labels) for labels in held] == [2] * 4
    assert len(set().union(*held)) == 8
    assert_tested_on_all_of(digits, federation, held)
    before = federation.replaces.tolist()
    assert before[: 4 * newcomers] == [-1] * 4 * newcomers
    for client, replaced in enumerate(before[4 * newcomers :], federation.clients + 4 * newcomers):
        assert 0 <= replaced < federation.clients
        assert federation.groups[client] == (federation.groups[replaced] + 1) % 4
    assert len(set(before[4 * newcomers :])) == 4
    late = federation.groups[federation.clients :]
    assert np.bincount(late).tolist() == [newcomers + 1] * 4


def test_changed_clients_hold_blocks_of_their_own(digits):
    """A cluster's images are cut for its clients and for those that will come to it."""
    federation = build_federation(digits, 0, "disjoint_labels", **DISJOINT, changed=2)
    held = labels_by_group(digits, federation)
    for client, rows in enumerate(federation.train):
        group = federation.groups[client]
        place = client % 3 + 2 if client < 12 else (client - 12) % 2
        expected = []
        for label in held[group]:
            size = COUNTS[label] // 5
            expected += shuffled_rows(digits, label)[place * size : (place + 1) * size]
        assert sorted(rows.tolist()) == sorted(expected)
    assert federation.replaces.tolist() == [0, 1, 3, 4, 6, 7, 9, 10]
    assert federation.groups[12:].tolist() == [1, 1, 2, 2, 3, 3, 0, 0]


def test_what_changes_is_saved(digits, tmp_path):
    settings = DISJOINT | {"newcomers": 1, "changed": 1}
    federation = build_federation(digits, 0, "disjoint_labels", **settings)
    save(federation, tmp_path / "f.safetensors", "")
    found, _ = load(tmp_path / "f.safetensors")
    assert everything(found) == everything(federation)
    assert found.newcomers == 8


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"labels": 3}, "4 clusters of 3 labels need 12, there are 10"),
        ({"groups": 10, "labels": 1, "clients": 9}, "10 groups for 9 clients; allowed are 1 to t"),
        ({"labels": 0}, "partition disjoint_labels: labels = 0 is not allowed: input should be gr"),
        ({"samples": 14}, "14 images of label "),
        ({"samples": 0}, "partition disjoint_labels: samples = 0 is not allowed: input should be"),
        ({"clients": 200}, "0 images of label "),
        ({"newcomers": 3}, "3 newcomers of a cluster with 3 clients whose data do not change; one"),
        ({"newcomers": 1, "changed": 2}, "1 newcomers of a cluster with 1 clients whose data do"),
        ({"changed": 3}, "0 newcomers of a cluster with 0 clients whose data do not change; one"),
        ({"changed": 4}, "0 newcomers of a cluster with 0 clients whose data do not change; one"),
        ({"newcomers": -1}, "partition disjoint_labels: newcomers = -1 is not allowed: input shou"),
        ({"changed": -1}, "partition disjoint_labels: changed = -1 is not allowed: input should"),
        ({"cluster": 2}, "partition disjoint_labels has no setting 'cluster'; allowed are clients"),
    ],
)
def test_impossible_disjoint_labels_are_told(digits, settings, sentence):
    assert told(build_federation, digits, 0, "disjoint_labels", **DISJOINT | settings).startswith(
        sentence
    )


# ---- Scenario 2: a ring of shared labels --------------------------------------------------------

RING = {"clients": 10, "groups": 5, "samples": 6}


@pytest.mark.parametrize(("clients", "groups"), [(10, 5), (9, 4), (7, 3), (4, 2)])
def test_neighbours_in_the_ring_share_one_label(digits, clients, groups):
    settings = {"clients": clients, "groups": groups, "samples": 6}
    federation = build_federation(digits, 0, "shared_label_ring", **settings)
    held = labels_by_group(digits, federation)
    assert [len(labels) for labels in held] == [3] * groups
    for one in range(groups):
        for other in range(one + 1, groups):
            gap = min(other - one, one + groups - other)
            assert len(held[one] & held[other]) == {1: 1 + (groups == 2)}.get(gap, 0)
    assert len(set().union(*held)) == 2 * groups
    assert federation.groups.tolist() == sorted(federation.groups.tolist())
    assert federation.sizes.tolist() == [18] * clients
    assert_tested_on_all_of(digits, federation, held)


def test_blocks_are_consecutive_and_the_same_in_both_clusters_of_a_label(digits):
    federation = build_federation(digits, 0, "shared_label_ring", **RING)
    held = labels_by_group(digits, federation)
    for client, group in enumerate(federation.groups):
        place = client % 2
        expected = []
        for label in held[group]:
            expected += shuffled_rows(digits, label)[place * 6 : (place + 1) * 6]
        assert sorted(federation.train[client].tolist()) == sorted(expected)
    for one in range(10):
        for other in range(one):
            shared = set(federation.train[one].tolist()) & set(federation.train[other].tolist())
            near = (federation.groups[one] - federation.groups[other]) % 5 in (1, 4)
            assert len(shared) == (6 if near and one % 2 == other % 2 else 0)


@pytest.mark.parametrize(
    ("kind", "settings"),
    [("disjoint_labels", DISJOINT), ("shared_label_ring", RING), ("structured", {"clients": 4})],
)
def test_the_order_of_a_copy_makes_no_client_different(digits, kind, settings):
    """Some copies keep look-alikes together, which a client would then have only."""
    federation = build_federation(digits, 0, kind, **settings)
    for rows in federation.train:
        place = [rows_with(digits, digits.y[row]).index(row) for row in rows]
        assert np.ptp(place) > 1.5 * len(rows) / len(labels_of(digits, rows))


def test_random_draws_overlap_within_a_cluster_and_not_within_a_client(digits):
    settings = RING | {"samples": 15, "sampling": "random"}
    federation = build_federation(digits, 0, "shared_label_ring", **settings)
    plain = build_federation(digits, 0, "shared_label_ring", **RING)
    held = labels_by_group(digits, plain)
    assert labels_by_group(digits, federation) == held
    for rows in federation.train:
        assert len(set(rows.tolist())) == 45
        assert np.bincount(digits.y[rows], minlength=10).max() == 15
    assert set(federation.train[0].tolist()) & set(federation.train[1].tolist())
    more = build_federation(digits, 0, "shared_label_ring", **settings | {"clients": 15})
    assert sorted(more.train[0].tolist()) == sorted(federation.train[0].tolist())


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"groups": 1}, "partition shared_label_ring: groups = 1 is not allowed: input should be"),
        ({"groups": 6, "clients": 12}, "a ring of 6 clusters; allowed are 2 to 5 for 10 labels"),
        ({"clients": 4}, "5 groups for 4 clients; allowed are 1 to the number of clients"),
        ({"samples": 0}, "partition shared_label_ring: samples = 0 is not allowed: input should"),
        ({"samples": 25}, "25 images of label "),
        ({"samples": 41, "sampling": "random"}, "41 images of label "),
        ({"sampling": "shards"}, "partition shared_label_ring: sampling = 'shards' is not allowed"),
    ],
)
def test_impossible_rings_are_told(digits, settings, sentence):
    assert told(build_federation, digits, 0, "shared_label_ring", **RING | settings).startswith(
        sentence
    )


def test_the_first_client_that_gets_too_few_is_named(digits):
    sentence = told(
        build_federation, digits, 0, "shared_label_ring", clients=50, groups=5, samples=4
    )
    assert sentence.endswith(f"need {4 * 7}, there are {COUNTS[int(sentence.split()[4])]}")
    assert " for client " in sentence


# ---- Scenario 3: writers ------------------------------------------------------------------------


def written(dataset, seed=0):
    """Writers 0 to 7; the third has no training images and the sixth no test images."""
    rng = np.random.default_rng(seed)
    owner = rng.integers(0, 8, len(dataset.y))
    split = dataset.train_rows
    owner[:split][owner[:split] == 2] = 3
    owner[split:][owner[split:] == 5] = 2
    owner[split:][:8] = [0, 1, 2, 3, 4, 6, 7, 2]
    return images(owner=owner)


def test_every_client_is_a_writer_with_its_own_test_images(digits):
    dataset = written(digits)
    federation = build_federation(dataset, 0, "writers", clients=5)
    for client, writer in enumerate((0, 1, 3, 4, 6)):
        rows = [row for row in range(len(dataset.y)) if dataset.owner[row] == writer]
        held = federation.train[client].tolist(), federation.test_sets[client].tolist()
        assert held[0] == [row for row in rows if row < dataset.train_rows]
        assert held[1] == [row for row in rows if row >= dataset.train_rows]
    assert federation.test_of.tolist() == [0, 1, 2, 3, 4]
    assert federation.groups.tolist() == [0] * 5
    np.testing.assert_array_equal(federation.label_maps, np.tile(np.arange(10), (5, 1)))
    assert everything(build_federation(dataset, 9, "writers", clients=5)) == everything(federation)


def test_impossible_writers_are_told(digits):
    sentence = "images has no owners; partition writers needs them"
    assert told(build_federation, digits, 0, "writers", clients=2) == sentence
    sentence = "7 clients; allowed are 1 to 6, the writers there are"
    assert told(build_federation, written(digits), 0, "writers", clients=7) == sentence
    sentence = told(build_federation, written(digits), 0, "writers", clients=0)
    assert sentence.startswith("partition writers: clients = 0 is not allowed")


# ---- Scenario 4: structured ---------------------------------------------------------------------


def literal_sizes(number, clients):
    """`emnist_noniid_cluster`: floor(F + exp(x i^2)) for i from 1, with x by halving."""
    base = number // 2 // clients
    low, high = 0.0, 1.0
    for _ in range(200):
        middle = (low + high) / 2
        total = sum(base + np.exp(min(middle * i * i, 700)) for i in range(1, clients + 1))
        low, high = (middle, high) if total < number else (low, middle)
    found = [int(np.floor(base + np.exp(low * i * i))) for i in range(1, clients + 1)]
    found[0] += number - sum(found)
    return found


@pytest.mark.parametrize(
    ("number", "clients", "smallest", "median", "largest"),
    [
        (12_000, 240, 26, 29, 259),
        (4_800, 240, 11, 12.5, 105),
        (12_000, 60, 101, 106.5, 1256),
        (100, 1, 100, 100, 100),
    ],
)
def test_sizes_are_those_of_the_code(number, clients, smallest, median, largest):
    found = sizes(number, clients)
    assert found.tolist() == literal_sizes(number, clients)
    assert found.tolist() == coded_sizes(number, clients).tolist()
    assert (found.sum(), found.min(), found.max()) == (number, smallest, largest)
    assert np.median(found) == median
    assert found.dtype == np.int64


@pytest.mark.parametrize("clients", [1, 2, 3, 17, 48])
@pytest.mark.parametrize("each", [3, 10, 250])
def test_the_study_deals_what_the_partition_deals(each, clients):
    assert coded_sizes(each * clients, clients).tolist() == sizes(each * clients, clients).tolist()


def test_too_few_images_are_told():
    with pytest.raises(InputError) as caught:
        sizes(6, 7)
    assert str(caught.value) == "6 images for 7 clients of a cluster; too few"


STRUCTURED = {"clients": 9, "labels": 4}
OWN = [{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9}]


@pytest.mark.parametrize("seed", [0, 1])
def test_clusters_are_consecutive_labels_cut_to_growing_sizes(digits, seed):
    federation = build_federation(digits, seed, "structured", **STRUCTURED)
    assert federation.groups.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    for group, labels in enumerate(OWN):
        own = federation.train[3 * group : 3 * group + 3]
        rows = [row for label in labels for row in rows_with(digits, label)]
        assert [len(part) for part in own] == literal_sizes(len(rows), 3)
        assert sorted(np.concatenate(own).tolist()) == sorted(rows)
        assert len(labels_of(digits, own[-1])) > 1  # a mixture, not label after label
    assert_tested_on_all_of(digits, federation, OWN)


def test_which_client_gets_which_image_depends_on_the_seed(digits):
    one, other = (build_federation(digits, seed, "structured", **STRUCTURED) for seed in (0, 1))
    assert one.train[2].tolist() != other.train[2].tolist()
    assert one.sizes.tolist() == other.sizes.tolist()


def test_the_row_of_zeros_adds_label_0_to_the_test_of_the_last_cluster(digits):
    plain = build_federation(digits, 0, "structured", **STRUCTURED)
    coded = build_federation(digits, 0, "structured", **STRUCTURED, zero_row=True)
    assert_tested_on_all_of(digits, coded, [*OWN[:2], {8, 9, 0}])
    assert everything(replace(coded, test_sets=plain.test_sets)) == everything(plain)
    assert [labels_of(digits, rows) for rows in coded.train[6:]] == [{8, 9}] * 3
    even = {"clients": 10, "labels": 5}
    found = build_federation(digits, 0, "structured", **even, zero_row=True)
    assert everything(found) == everything(build_federation(digits, 0, "structured", **even))


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"clients": 10}, "10 clients; allowed are multiples of the 3 clusters, two each or more"),
        ({"clients": 3}, "3 clients; allowed are multiples of the 3 clusters, two each or more"),
        ({"clients": 300}, "51 images for 100 clients of a cluster; too few"),
    ],
)
def test_impossible_structures_are_told(digits, settings, sentence):
    assert told(build_federation, digits, 0, "structured", **STRUCTURED | settings) == sentence


@pytest.mark.parametrize("settings", [{"clients": 0}, {"clients": 4, "labels": 0}])
def test_no_clients_and_no_labels_are_told(digits, settings):
    name = "labels" if "labels" in settings else "clients"
    sentence = f"partition structured: {name} = 0 is not allowed: input should be greater"
    assert told(build_federation, digits, 0, "structured", **settings).startswith(sentence)
