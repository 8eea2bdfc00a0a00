"""What every partition can be given beside its own settings, against the same done by hand."""

import sys
from subprocess import run

import numpy as np
import pytest
from refusals import told

from clustered_fl.data import dataset as datasets
from clustered_fl.data.own_images import own_images
from clustered_fl.data.partitions import build_federation, partition_settings
from clustered_fl.randomness import generator

LABELS, TRAIN, TEST = 10, 4000, 200
KINDS = {
    "congruent_pair": {},
    "rotation": {"clients": 12, "groups": 4},
    "shared_label_ring": {"clients": 15, "groups": 5, "samples": 20},
    "structured": {"clients": 8},
    "topic_per_client": {"clients": 20, "held_out": 0.3},
    "label_swap": {"clients": 8, "groups": 4, "newcomers": 5},
    "dirichlet": {"clients": 8, "newcomers": 2},
}


@pytest.fixture(scope="module")
def images():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (TRAIN + TEST, 3, 2, 2), dtype=np.uint8)
    y = np.concatenate([rng.permutation(np.arange(n) % LABELS) for n in (TRAIN, TEST)])
    return datasets.build("cifar10", "mirror", x, y, TRAIN, tuple("abcdefghij"))


def held(federation, client):
    """Training rows, tests, names of the classes and true group."""
    about = (federation.label_maps[client].tolist(), federation.groups[client])
    return federation.train[client].tolist(), federation.tests_of(client).tolist(), *about


def everything(federation):
    return [held(federation, client) for client in range(len(federation.train))]


# ---- A share of the images ----------------------------------------------------------------------

DIRICHLET = {"clients": 8, "alpha": None}


@pytest.mark.parametrize("share", [0.001, 0.1, 0.4, 1.0])
def test_clients_with_tests_of_their_own_keep_the_first_of_both(images, share):
    whole = build_federation(images, 3, "dirichlet", **DIRICHLET)
    thin = build_federation(images, 3, "dirichlet", **DIRICHLET, share=share)
    for parts in ("train", "test_sets"):
        for all_of_it, kept in zip(getattr(whole, parts), getattr(thin, parts), strict=True):
            assert kept.tolist() == all_of_it[: max(1, round(share * len(all_of_it)))].tolist()
    for name in ("test_of", "label_maps", "groups"):
        np.testing.assert_array_equal(getattr(thin, name), getattr(whole, name))


def test_what_is_kept_has_the_labels_of_the_whole(images):
    """A draw of half the images of about 400 is off by a few; half of the sorted ones is not."""
    whole = build_federation(images, 3, "dirichlet", clients=8, newcomers=2)
    thin = build_federation(images, 3, "dirichlet", clients=8, newcomers=2, share=0.5)
    for all_of_it, kept in zip(whole.train, thin.train, strict=True):
        half = np.bincount(images.y[all_of_it], minlength=LABELS) / 2
        assert np.abs(np.bincount(images.y[kept], minlength=LABELS) - half).max() < 20
    for client in (8, 9):  # holdout clients are placed by what they are tested on
        np.testing.assert_array_equal(thin.train[client], thin.tests_of(client))


@pytest.mark.parametrize("share", [0.25, 1.0])
@pytest.mark.parametrize("kind", ["structured", "rotation", "label_swap"])
def test_others_keep_a_random_part_and_their_tests(images, kind, share):
    whole = build_federation(images, 3, kind, **KINDS[kind])
    thin = build_federation(images, 3, kind, **KINDS[kind], share=share)
    for client, (rows, *about) in enumerate(everything(whole)):
        drawn = generator(3, "thinned", client).permutation(rows)
        kept = sorted(drawn[: max(1, round(share * len(rows)))].tolist())
        assert held(thin, client) == (kept, *about)


# ---- Newcomers ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["congruent_pair", "rotation", "structured", "topic_per_client"])
def test_the_last_of_each_group_join_later_with_what_they_hold(images, kind):
    whole = build_federation(images, 3, kind, **KINDS[kind])
    found = build_federation(images, 3, kind, **KINDS[kind], newcomers=1)
    sizes = np.bincount(whole.groups)
    late = (np.cumsum(sizes) - 1).tolist()
    assert (found.newcomers, found.clients) == (len(sizes), len(whole.train) - len(sizes))
    order = [client for client in range(len(whole.train)) if client not in late] + late
    assert everything(found) == [held(whole, client) for client in order]


def test_a_group_without_a_client_at_the_start_is_refused(images):
    line = told(build_federation, images, 3, "rotation", clients=9, groups=4, newcomers=2)
    assert line.startswith("2 newcomers of a cluster with 2 clients whose data do not change")


@pytest.mark.parametrize("kind", ["label_swap", "dirichlet"])
def test_newcomers_that_a_partition_has_itself_stay_as_they_are(images, kind):
    found = build_federation(images, 3, kind, **KINDS[kind])
    assert (found.clients, found.newcomers) == (8, {"label_swap": 4, "dirichlet": 2}[kind])


# ---- Tests of their own -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["congruent_pair", "rotation", "structured", "label_swap"])
@pytest.mark.parametrize("share", [None, 0.5])
def test_clients_are_tested_on_a_part_of_what_they_held(images, kind, share):
    whole = build_federation(images, 3, kind, **KINDS[kind])
    found = build_federation(images, 3, kind, **KINDS[kind], held_out=0.25, share=share)
    for client in range(found.clients):
        rows = generator(3, "validation", client).permutation(whole.train[client])
        cut = round(0.25 * len(rows))
        tests, train = rows[:cut], rows[cut:]
        if share:
            tests, train = (part[: round(share * len(part))] for part in (tests, train))
        assert held(found, client)[:2] == (train.tolist(), tests.tolist())
    np.testing.assert_array_equal(found.groups, whole.groups)
    np.testing.assert_array_equal(found.label_maps, whole.label_maps)


def test_clients_that_share_images_have_no_tests_of_their_own(images):
    line = told(
        build_federation, images, 3, "shared_label_ring", **KINDS["shared_label_ring"], held_out=0.2
    )
    assert line.startswith("held_out needs clients without images in common; row ")
    line = told(build_federation, images, 3, "congruent_pair", samples=1, held_out=0.2)
    assert line == "client 0 has no samples; every client needs at least one"


# ---- Drift --------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [None, 0.5])
@pytest.mark.parametrize("kind", ["structured", "label_swap", "congruent_pair", "dirichlet"])
def test_true_groups_with_drift_also_share_a_pipeline(images, kind, share):
    own = {"held_out": 0.2, "share": share}
    plain = build_federation(images, 3, kind, **KINDS[kind], **own)
    found = build_federation(images, 3, kind, **KINDS[kind], **own, drift={"pipelines": 3})
    pairs = [(group, client % 3) for client, group in enumerate(plain.groups.tolist())]
    assert found.groups.tolist() == [list(dict.fromkeys(pairs)).index(pair) for pair in pairs]
    for before, after in zip(everything(plain), everything(found), strict=True):
        assert before[:3] == after[:3]
    apart = build_federation(images, 3, kind, **KINDS[kind], **own, drift={"transforms": 1})
    np.testing.assert_array_equal(apart.groups, plain.groups)


def test_any_clients_with_images_of_their_own_see_them_through_pipelines():
    x = np.random.default_rng(0).integers(0, 256, (70, 3, 24, 24), dtype=np.uint8)
    pictures = datasets.build("pictures", "mirror", x, np.arange(70) % 2, 60, ("a", "b"))
    settings = {"kind": "shards", "clients": 4, "newcomers": 1, "drift": {"transforms": 4}}
    federation = build_federation(pictures, 3, **settings)
    found = own_images(pictures, federation, settings, 3)
    for client in range(5):
        rows = federation.rows_of(client)
        assert (found.x[rows] != x[rows]).any((1, 2, 3)).all()
    np.testing.assert_array_equal(found.x[60:], x[60:])


@pytest.mark.parametrize("kind", ["label_swap", "structured", "shared_label_ring"])
def test_clients_that_share_images_cannot_drift(images, kind):
    line = told(build_federation, images, 3, kind, **KINDS[kind], drift={})
    assert line.startswith("drift needs clients without images in common; row ")


def test_images_that_the_partition_changes_itself_do_not_drift(images):
    line = told(
        build_federation, images, 3, "rotation", **KINDS["rotation"], held_out=0.2, drift={}
    )
    assert line == "partition rotation: drift = {} is not allowed: input should be None"


def test_turned_images_are_those_of_each_client_whatever_modifies_it(images):
    settings = {"kind": "rotation", "clients": 12, "groups": 2, "held_out": 0.2, "newcomers": 1}
    federation = build_federation(images, 3, **settings)
    found, expected = own_images(images, federation, settings, 3), images.x.copy()
    for client in np.flatnonzero(federation.groups == 1):
        rows = federation.rows_of(client)
        expected[rows] = images.x[rows][:, :, ::-1, ::-1]
    np.testing.assert_array_equal(found.x, expected)


# ---- What a kind can be given -------------------------------------------------------------------


def test_settings_are_known_before_anything_is_built():
    assert list(partition_settings("structured").model_fields) == [
        *("clients", "labels", "zero_row", "newcomers", "held_out", "share", "drift")
    ]
    own = partition_settings("dirichlet").model_fields
    assert (own["held_out"].default, own["newcomers"].default, own["drift"].default) == (
        0.2,
        0,
        None,
    )
    assert partition_settings("topic_per_client").model_fields["held_out"].is_required()


def test_settings_of_all_kinds_need_no_torch():
    code = """if True:
        import sys
        from clustered_fl.data.partitions import partition_settings
        from clustered_fl.options import modules_of
        for kind in modules_of("clustered_fl.data.partitions"):
            partition_settings(kind)
        sys.exit("torch" in sys.modules)
    """
    assert run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("kind", "changes", "line"),
    [
        ("dirichlet", {"share": 0}, "partition dirichlet: share = 0 is not allowed"),
        ("structured", {"share": 1.5}, "partition structured: share = 1.5 is not allowed"),
        ("rotation", {"held_out": 1}, "partition rotation: held_out = 1 is not allowed: input"),
        ("rotation", {"newcomers": -1}, "partition rotation: newcomers = -1 is not allowed"),
        ("structured", {"drift": {"pipelines": 0}}, "partition structured: drift.pipelines = 0 is"),
        ("structured", {"shares": 1}, "partition structured has no setting 'shares'; allowed are"),
        ("structured", {"seed": 1}, "partition structured has no setting 'seed'; allowed are cl"),
        ("topic_per_client", {"held_out": None}, "partition topic_per_client: held_out = None is"),
    ],
)
def test_what_cannot_be_is_told(images, kind, changes, line):
    assert told(build_federation, images, 3, kind, **KINDS[kind] | changes).startswith(line)
