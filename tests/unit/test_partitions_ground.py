"""Equal shares and quarter turns, and datasets in which clients see images of their own."""

import json

import numpy as np
import pytest
from refusals import told

from clustered_fl.cli import main
from clustered_fl.data import dataset as datasets
from clustered_fl.data import federation as federations
from clustered_fl.data.own_images import has_own_images, own_images
from clustered_fl.data.partitions import build_federation
from clustered_fl.data.transforms import drifted

TRAIN, TEST, SIDE = 96, 23, 5


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (TRAIN + TEST, 3, SIDE, SIDE), dtype=np.uint8)
    return datasets.build("images", "builtin", x, np.arange(len(x)) % 4, TRAIN, tuple("abcd"))


def everything(federation):
    parts = (federation.train, federation.test_sets)
    arrays = (federation.test_of, federation.label_maps, federation.groups)
    return [[rows.tolist() for rows in part] for part in parts] + [a.tolist() for a in arrays]


# ---- Equal shares -------------------------------------------------------------------------------


def test_iid_clients_hold_equal_shares_and_are_tested_on_a_fifth_of_them(data):
    federation = build_federation(data, 0, "iid", clients=6, samples=10)
    held = [*federation.train, *federation.test_sets]
    assert [len(rows) for rows in held] == [8] * 6 + [2] * 6
    rows = np.concatenate(held)
    assert len(set(rows.tolist())) == len(rows)
    assert rows.max() < TRAIN
    assert federation.test_of.tolist() == list(range(6))
    assert federation.groups.tolist() == [0] * 6
    np.testing.assert_array_equal(federation.label_maps, np.tile(np.arange(4), (6, 1)))


def test_a_smaller_share_is_part_of_a_larger_one(data):
    small, all_of_it = (
        build_federation(data, 3, "iid", clients=4, samples=samples) for samples in (9, None)
    )
    for client in range(4):
        few, many = (
            {*f.train[client].tolist(), *f.test_sets[client].tolist()} for f in (small, all_of_it)
        )
        assert len(few) == 9
        assert len(many) == TRAIN // 4
        assert few < many


def test_pipelines_are_shared_in_turn_and_change_no_row(data):
    settings = {"clients": 6, "samples": 10, "newcomers": 1}
    plain = build_federation(data, 0, "iid", **settings)
    drifting = build_federation(data, 0, "iid", **settings, drift={"pipelines": 3})
    assert drifting.groups.tolist() == [0, 1, 2, 0, 1, 2, 0]
    assert (drifting.newcomers, drifting.clients) == (1, 6)
    assert everything(plain)[:3] == everything(drifting)[:3]


def test_another_seed_is_another_partition(data):
    first, second = (build_federation(data, seed, "iid", clients=6) for seed in (0, 1))
    assert everything(first) != everything(second)


def test_too_few_images_are_told(data):
    line = told(build_federation, data, 0, "iid", clients=6, samples=17)
    assert line == ("17 samples per client asked of 96 rows for 6 clients; allowed are 1 to 16")


# ---- Quarter turns ------------------------------------------------------------------------------

TURNING = {"clients": 6, "groups": 2, "samples": 7}


def test_groups_have_shares_of_images_and_of_tests(data):
    federation = build_federation(data, 0, "rotation", **TURNING)
    assert federation.groups.tolist() == federation.test_of.tolist() == [0, 0, 0, 1, 1, 1]
    assert [len(rows) for rows in federation.train] == [7] * 6
    assert [len(rows) for rows in federation.test_sets] == [TEST // 2] * 2
    trained, tested = np.concatenate(federation.train), np.concatenate(federation.test_sets)
    rows = np.concatenate([trained, tested])
    assert len(set(rows.tolist())) == len(rows)
    assert trained.max() < TRAIN <= tested.min()


def turned(image, quarters):
    """One channel after so many quarter turns counter-clockwise, pixel by pixel."""
    for _ in range(quarters):
        image = [[image[row][SIDE - 1 - line] for row in range(SIDE)] for line in range(SIDE)]
    return image


@pytest.mark.parametrize(("groups", "quarters"), [(2, [0, 2]), (4, [0, 1, 2, 3])])
def test_images_are_those_turned_pixel_by_pixel(data, groups, quarters):
    settings = {"clients": 8, "groups": groups}
    federation = build_federation(data, 5, "rotation", **settings)
    found = own_images(data, federation, {"kind": "rotation", **settings}, 5)
    expected = data.x.copy()
    for client, rows in enumerate(federation.train):
        tests = federation.test_sets[federation.test_of[client]]
        for row in (*rows, *tests):
            expected[row] = [turned(c, quarters[federation.groups[client]]) for c in data.x[row]]
    np.testing.assert_array_equal(found.x, expected)
    np.testing.assert_array_equal(found.y, data.y)
    assert found.note == f"images of {groups} groups turned by {360 // groups} degrees each"
    assert found.digest != data.digest


def test_the_partition_of_turned_images_is_the_same(data):
    federation = build_federation(data, 5, "rotation", **TURNING)
    found = own_images(data, federation, {"kind": "rotation", **TURNING}, 5)
    again = build_federation(found, 5, "rotation", **TURNING)
    assert everything(federation) == everything(again)


@pytest.mark.parametrize("groups", [1, 3, 5])
def test_turns_that_are_no_quarter_turns_are_told(data, groups):
    line = told(build_federation, data, 0, "rotation", clients=8, groups=groups)
    assert line == f"partition rotation: groups = {groups} is not allowed: input should be 2 or 4"


def test_images_that_are_not_square_are_told(data):
    flat = datasets.build("flat", "builtin", data.x[..., 1:], data.y, TRAIN, tuple("abcd"))
    federation = build_federation(flat, 0, "rotation", **TURNING)
    line = told(own_images, flat, federation, {"kind": "rotation", **TURNING}, 0)
    assert line == "rotation turns square images, and flat has none"


# ---- Images of their own ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"kind": "rotation", "groups": 2}, True),
        ({"kind": "iid", "drift": {}}, True),
        ({"kind": "iid", "drift": None}, False),
        ({"kind": "label_swap"}, False),
    ],
)
def test_which_clients_have_images_of_their_own(settings, expected):
    assert has_own_images(settings) == expected


def test_pipelines_are_those_of_the_transforms(data):
    settings = {"kind": "iid", "clients": 4, "samples": 6, "drift": {"pipelines": 2}}
    rest = {key: value for key, value in settings.items() if key != "kind"}
    federation = build_federation(data, 1, "iid", **rest)
    found, expected = (
        own_images(data, federation, settings, 1),
        drifted(data, federation, settings["drift"], 1),
    )
    np.testing.assert_array_equal(found.x, expected.x)


def test_the_step_writes_turned_images(data, tmp_path):
    datasets.save(data, tmp_path / "source")
    settings = {"kind": "rotation", **TURNING}
    about = {"data": tmp_path / "source", "seed": 2, "settings": json.dumps(settings)}
    pairs = [f"--{name}={value}" for name, value in about.items()]
    assert main(["partition", *pairs, f"--out={tmp_path / 'clients'}"]) == 0
    assert main(["partition", *pairs, f"--out={tmp_path / 'images'}", "--images"]) == 0
    federation, _ = federations.load(tmp_path / "clients")
    expected = own_images(data, federation, settings, 2)
    found = datasets.load(tmp_path / "images")
    np.testing.assert_array_equal(found.x, expected.x)
