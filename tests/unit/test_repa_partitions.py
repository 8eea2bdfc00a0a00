"""REPA's clients: what each holds, which only have validation images, and how images drift."""

from collections import Counter
from contextlib import nullcontext

import numpy as np
import pytest
import torch
from refusals import told
from torchvision.transforms import v2

from clustered_fl.data import dataset as datasets
from clustered_fl.data import transforms
from clustered_fl.data.drift import Drift
from clustered_fl.data.partitions import build_federation
from clustered_fl.data.partitions.dirichlet import proportions
from clustered_fl.data.partitions.two_labels import label_pairs
from clustered_fl.data.transforms import drifted, pipeline, transformed
from clustered_fl.randomness import generator

TRAIN, TEST, LABELS = 1000, 100, 10


@pytest.fixture(scope="module")
def images():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (TRAIN + TEST, 3, 2, 2), dtype=np.uint8)
    y = np.concatenate([rng.permutation(np.arange(n) % LABELS) for n in (TRAIN, TEST)])
    return datasets.build("cifar10", "mirror", x, y, TRAIN, tuple("abcdefghij"))


def owned(federation, client):
    tests = federation.test_sets[federation.test_of[client]]
    return np.union1d(federation.train[client], tests)


def held(federation):
    return np.concatenate([owned(federation, i) for i in range(len(federation.train))])


KINDS = {
    "dirichlet": {"clients": 16, "newcomers": 4},
    "two_labels": {"clients": 16, "newcomers": 4},
    "shards": {"clients": 16, "newcomers": 4},
}


@pytest.mark.parametrize("kind", KINDS)
def test_images_are_dealt_once_and_none_of_the_official_tests(images, kind):
    federation = build_federation(images, 3, kind, **KINDS[kind])
    rows = held(federation)
    assert len(rows) == len(set(rows.tolist()))
    assert sorted(rows.tolist()) == list(range(TRAIN))
    assert (federation.clients, federation.newcomers) == (16, 4)
    assert (federation.label_maps == np.arange(LABELS)).all()


@pytest.mark.parametrize("kind", KINDS)
def test_clients_are_tested_on_a_fifth_of_their_own_and_holdout_clients_on_all(images, kind):
    federation = build_federation(images, 3, kind, **KINDS[kind])
    for client in range(20):
        train, tests = federation.train[client], federation.test_sets[federation.test_of[client]]
        if client < 16:
            assert len(tests) == max(1, round(0.2 * (len(train) + len(tests))))
            assert not set(train) & set(tests)
        else:
            np.testing.assert_array_equal(train, tests)


@pytest.mark.parametrize("kind", KINDS)
def test_the_seed_decides_everything(images, kind):
    def rows(seed):
        federation = build_federation(images, seed, kind, **KINDS[kind])
        return [part.tolist() for part in (*federation.train, *federation.test_sets)]

    assert rows(5) == rows(5) != rows(6)


@pytest.mark.parametrize("kind", KINDS)
def test_a_client_must_train(images, kind):
    line = told(build_federation, images, 0, kind, clients=0, newcomers=4)
    assert line.startswith(f"partition {kind}: clients = 0 is not allowed")
    line = told(build_federation, images, 0, kind, clients=4, newcomers=-1)
    assert line.startswith(f"partition {kind}: newcomers = -1 is not allowed")
    line = told(build_federation, images, 0, kind, clients=4, held_out=1.0)
    assert line.startswith(f"partition {kind}: held_out = 1.0 is not allowed")


# ---- Dirichlet ----------------------------------------------------------------------------------


def skew(images, alpha):
    """Mean over clients of the share of their most frequent label."""
    federation = build_federation(images, 0, "dirichlet", clients=20, alpha=alpha, minimum=2)
    counts = [np.bincount(images.y[owned(federation, i)], minlength=LABELS) for i in range(20)]
    return np.mean([own.max() / own.sum() for own in counts])


def test_a_smaller_alpha_is_a_stronger_skew_and_none_is_no_skew(images):
    found = [skew(images, alpha) for alpha in (0.1, 0.5, 5.0, None)]
    assert found == sorted(found, reverse=True)
    assert found[0] > 0.5
    assert found[-1] == pytest.approx(0.1)


def test_without_skew_all_clients_have_equally_many_of_every_label(images):
    federation = build_federation(images, 0, "dirichlet", clients=20, alpha=None)
    for client in range(20):
        assert np.bincount(images.y[owned(federation, client)]).tolist() == [5] * LABELS


def test_the_smallest_client_has_the_minimum(images):
    smallest = []
    for minimum in (2, 25):
        settings = {"clients": 16, "newcomers": 4, "alpha": 1.0, "minimum": minimum}
        federation = build_federation(images, 1, "dirichlet", **settings)
        smallest.append(min(len(owned(federation, i)) for i in range(20)))
    assert smallest[0] >= 2
    assert smallest[1] >= 25


def test_a_client_with_its_share_gets_no_more():
    room = np.array([True, False, True, False])
    for seed in range(20):
        found = proportions(room, 0.2, np.random.default_rng(seed))
        assert found.sum() == pytest.approx(1)
        assert (found[~room] == 0).all()


def test_if_all_went_to_clients_without_room_the_others_share():
    class Drawn:
        def dirichlet(self, _):
            return np.array([1.0, 0.0, 0.0])

    found = proportions(np.array([False, True, True]), 0.2, Drawn())
    assert found.tolist() == [0, 0.5, 0.5]


def test_shares_are_those_of_a_loop_over_labels(images):
    """The partitioner step by step, from the same draws."""
    rng, labels = generator(7, "shares"), images.y[:TRAIN]
    own = {client: [] for client in range(5)}
    for label in range(LABELS):
        rows = rng.permutation([r for r in range(TRAIN) if labels[r] == label])
        drawn = rng.dirichlet([0.7] * 5)
        drawn = [p if len(own[c]) < TRAIN / 5 else 0.0 for c, p in enumerate(drawn)]
        ends, passed = [], 0.0
        for p in drawn:
            passed += p / sum(drawn)
            ends.append(round(passed * len(rows)))
        for client, end in enumerate(ends):
            own[client] += rows[([0, *ends])[client] : end].tolist()
    federation = build_federation(images, 7, "dirichlet", clients=5, alpha=0.7, minimum=2)
    for client in range(5):
        assert sorted(owned(federation, client).tolist()) == sorted(own[client])


def test_what_dirichlet_cannot_do_is_told(images):
    line = told(build_federation, images, 0, "dirichlet", clients=101)
    assert line == ("101 clients of 10 images or more; allowed are 1 to 100 clients of 1000 images")
    line = told(build_federation, images, 0, "dirichlet", clients=20, alpha=0.01, minimum=49)
    assert line.startswith("in 100 draws with alpha = 0.01 some of 20 clients always had fewer")
    line = told(build_federation, images, 0, "dirichlet", clients=2, drift={"transform": 2})
    assert line.startswith("partition dirichlet has no setting 'drift.transform'")


# ---- Two labels, and shards ---------------------------------------------------------------------


@pytest.mark.parametrize(("clients", "classes"), [(1, 2), (3, 2), (5, 3), (20, 10), (100, 10)])
def test_pairs_are_of_different_labels_that_are_equally_frequent(clients, classes):
    for seed in range(20):
        pairs = label_pairs(clients, classes, np.random.default_rng(seed))
        assert (pairs[:, 0] != pairs[:, 1]).all()
        times = np.bincount(pairs.reshape(-1), minlength=classes)
        assert times.max() - times.min() <= 1


def test_two_labels_are_exactly_two_and_make_the_true_groups(images):
    federation = build_federation(images, 0, "two_labels", clients=20)
    sets = [frozenset(images.y[owned(federation, i)].tolist()) for i in range(20)]
    assert {len(own) for own in sets} == {2}
    for i in range(20):
        for j in range(20):
            assert (sets[i] == sets[j]) == (federation.groups[i] == federation.groups[j])
    assert federation.groups.max() + 1 == len(set(sets))


def test_samples_are_of_each_label(images):
    federation = build_federation(images, 0, "two_labels", clients=20, samples=10)
    counts = [Counter(images.y[owned(federation, i)].tolist()) for i in range(20)]
    assert {tuple(own.values()) for own in counts} == {(10, 10)}
    line = told(build_federation, images, 0, "two_labels", clients=20, samples=26)
    assert line.startswith("26 samples per client asked of 100 rows for 4 clients;")


def test_shards_are_consecutive_when_sorted_by_label(images):
    federation = build_federation(images, 0, "shards", clients=8)
    order = generator(0, "order of rows").permutation(TRAIN)
    place = np.argsort(order[np.argsort(images.y[order], kind="stable")])
    size = TRAIN // 16
    shards = []
    for client in range(8):
        own = sorted(place[owned(federation, client)].tolist())
        shards += [tuple(own[:size]), tuple(own[size:])]
    starts = sorted(shard[0] for shard in shards)
    assert starts == [size * i for i in range(16)]
    assert all(shard == tuple(range(shard[0], shard[0] + size)) for shard in shards)


def test_shards_cross_the_borders_of_labels(images):
    federation = build_federation(images, 0, "shards", clients=8)
    labels = {len(set(images.y[owned(federation, i)].tolist())) for i in range(8)}
    assert labels <= {1, 2, 3, 4}
    assert max(labels) > 2
    line = told(build_federation, images, 0, "shards", clients=501)
    assert line == "501 clients of 2 shards; allowed are 1 to 500 clients of 1000 images"


# ---- Writers ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def written():
    rng = np.random.default_rng(1)
    owner = np.concatenate([rng.permutation(np.arange(60) % 12), np.arange(24) % 12])
    x = rng.integers(0, 256, (84, 1, 2, 2), dtype=np.uint8)
    return datasets.build("femnist", "mirror", x, np.arange(84) % 3, 60, tuple("abc"), owner=owner)


def test_holdout_writers_have_all_their_images_for_validation(written):
    federation = build_federation(written, 0, "writers", clients=6, newcomers=3)
    who = [set(written.owner[owned(federation, i)].tolist()) for i in range(9)]
    assert all(len(own) == 1 for own in who)
    assert set.union(*who) == set(range(9))
    for client in range(9):
        (own,) = who[client]
        np.testing.assert_array_equal(
            owned(federation, client), np.flatnonzero(written.owner == own)
        )
    for client in (6, 7, 8):
        tests = federation.test_sets[federation.test_of[client]]
        np.testing.assert_array_equal(federation.train[client], tests)
    for client in range(6):
        assert (federation.train[client] < 60).all()
        assert (federation.test_sets[client] >= 60).all()


def test_holdout_writers_are_drawn_among_all(written):
    def late(seed):
        federation = build_federation(written, seed, "writers", clients=6, newcomers=3)
        return {int(written.owner[federation.train[i][0]]) for i in (6, 7, 8)}

    assert late(0) == late(0)
    assert len({frozenset(late(seed)) for seed in range(5)}) > 1


def test_without_newcomers_writers_are_as_before(written):
    for seed in (0, 1):
        federation = build_federation(written, seed, "writers", clients=4)
        for client in range(4):
            train = np.flatnonzero(written.owner[:60] == client)
            np.testing.assert_array_equal(federation.train[client], train)
            tests = 60 + np.flatnonzero(written.owner[60:] == client)
            np.testing.assert_array_equal(federation.test_sets[client], tests)
    line = told(build_federation, written, 0, "writers", clients=10, newcomers=3)
    assert line == "13 clients; allowed are 1 to 12, the writers there are"


# ---- Drift --------------------------------------------------------------------------------------

SIDE = 24


@pytest.fixture(scope="module")
def pictures():
    rng = np.random.default_rng(2)
    x = rng.integers(0, 256, (60, 3, SIDE, SIDE), dtype=np.uint8)
    return datasets.build(
        "cifar10", "builtin", x, np.arange(60) % 2, 50, ("a", "b"), note="stand-in"
    )


OWN = {"kind": "dirichlet", "clients": 4, "newcomers": 1, "alpha": None}


def federation_of(dataset, drift):
    return build_federation(dataset, 0, **OWN, drift=drift)


def test_drift_changes_pixels_of_clients_and_nothing_else(pictures):
    federation = federation_of(pictures, {"transforms": 3})
    found = drifted(pictures, federation, {"transforms": 3}, 0)
    np.testing.assert_array_equal(found.y, pictures.y)
    np.testing.assert_array_equal(found.x[50:], pictures.x[50:])
    assert (found.train_rows, found.classes, found.source) == (50, ("a", "b"), "builtin")
    assert found.digest != pictures.digest
    assert found.note.startswith("stand-in; ")
    again = federation_of(found, {"transforms": 3})
    for before, after in zip(federation.train, again.train, strict=True):
        np.testing.assert_array_equal(before, after)


def test_every_clients_images_pass_through_its_own_pipeline(pictures):
    federation, drift = federation_of(pictures, {"transforms": 2}), Drift(transforms=2)
    found = drifted(pictures, federation, {"transforms": 2}, 4)
    state = torch.random.get_rng_state()
    for client in range(5):
        rows = owned(federation, client)
        through = pipeline(drift, 4, client)
        torch.manual_seed(int(generator(4, "transformed images", client).integers(2**31)))
        for row in rows:  # one image after the other, with the draws in this order
            image = through(torch.from_numpy(pictures.x[row]) / 255)
            expected = (image.clamp(0, 1) * 255).round().byte().numpy()
            np.testing.assert_array_equal(found.x[row], expected)
    torch.random.set_rng_state(state)


def test_images_of_one_client_are_not_all_transformed_alike(pictures):
    same = np.repeat(pictures.x[:1], 40, axis=0)
    found = transformed(same, v2.RandomVerticalFlip(p=0.5), 0)
    flipped = [np.array_equal(image, same[0, :, ::-1]) for image in found]
    assert 5 < sum(flipped) < 35


def test_drawing_leaves_torchs_generator_as_it_was(pictures):
    before = torch.random.get_rng_state()
    first = transformed(pictures.x[:3], pipeline(Drift(), 0, 0), 5)
    assert torch.equal(before, torch.random.get_rng_state())
    torch.manual_seed(1)
    np.testing.assert_array_equal(first, transformed(pictures.x[:3], pipeline(Drift(), 0, 0), 5))
    torch.random.set_rng_state(before)


@pytest.mark.parametrize("fails", [False, True])
def test_drift_leaves_torchs_threads_as_they_were(pictures, monkeypatch, fails):
    used, before, drift = [], torch.get_num_threads(), {"transforms": 2}

    def watched(images, *_):
        used.append(torch.get_num_threads())
        return images[:0] if fails else images

    monkeypatch.setattr(transforms, "transformed", watched)
    torch.set_num_threads(2)
    try:
        with pytest.raises(ValueError, match="shape") if fails else nullcontext():
            drifted(pictures, federation_of(pictures, drift), drift, 0)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert set(used) == {1}


def test_pipelines_are_different_or_shared_in_turn():
    own, shared = Drift(), Drift(pipelines=2)
    assert len({repr(pipeline(own, 0, client)) for client in range(6)}) == 6
    said = [repr(pipeline(shared, 0, client)) for client in range(6)]
    assert said == said[:2] * 3
    assert said[0] != said[1]
    assert repr(pipeline(own, 1, 0)) != repr(pipeline(own, 0, 0))


def test_a_pipeline_has_as_many_different_transforms_as_asked():
    for n in range(1, 9):
        kinds = [type(each).__name__ for each in pipeline(Drift(transforms=n), 0, 3).transforms]
        assert len(set(kinds)) == len(kinds) == n
    assert "RandomGrayscale" in kinds


def test_every_transform_takes_grey_and_coloured_images_and_stays_in_range():
    every = Drift(transforms=8)
    for channels in (1, 3):
        images = np.random.default_rng(0).integers(0, 256, (2, channels, 28, 28), dtype=np.uint8)
        for client in range(5):
            found = transformed(images, pipeline(every, 0, client), 1)
            assert (found.shape, found.dtype) == (images.shape, np.uint8)


def test_true_groups_are_shared_pipelines(pictures):
    assert federation_of(pictures, {"pipelines": 2}).groups.tolist() == [0, 1, 0, 1, 0]
    assert federation_of(pictures, {"transforms": 1}).groups.tolist() == [0] * 5
    assert federation_of(pictures, None).groups.tolist() == [0] * 5


def test_what_cannot_drift_is_told(pictures):
    federation = federation_of(pictures, {})
    assert told(drifted, pictures, federation, None, 0) == (
        "this federation has no drift; give it the setting `drift`"
    )
    line = told(drifted, pictures, federation, {"transforms": 9}, 0)
    assert line.startswith("drift: transforms = 9 is not allowed")
