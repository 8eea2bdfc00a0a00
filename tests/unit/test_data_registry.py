"""The table of datasets: what is committed holds, and a slip of the pen is named."""

from pathlib import Path

import pytest
import yaml

from clustered_fl.data.builtin import STAND_INS
from clustered_fl.data.registry import Composed, Entry, find, read_registry
from clustered_fl.errors import InputError

COMMITTED = Path(__file__).parents[2] / "config" / "datasets.yaml"
ENTRY = {
    "hub": "someone/tiny",
    "revision": None,
    "licence": "MIT",
    "citation": "nowhere",
    "rows": {"train": 4, "test": 2},
    "classes": ["a", "b"],
    "column": "image",
    "label": "label",
    "shape": [1, 2, 2],
    "stand_in": None,
}

SMALL = {"tiny": ENTRY, "small": ENTRY}


@pytest.fixture
def write(tmp_path):
    def write(content) -> Path:
        path = tmp_path / "datasets.yaml"
        path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
        return path

    return write


def test_committed_table_is_valid():
    entries = [entry for entry in read_registry(COMMITTED).values() if isinstance(entry, Entry)]
    assert {"mnist", "cifar10", "ag_news"} <= {entry.name for entry in entries}
    for entry in entries:
        assert len(set(entry.classes)) == len(entry.classes)
        assert entry.stand_in in STAND_INS


def test_committed_cifar20_has_twenty_distinct_classes():
    registry = read_registry(COMMITTED)
    assert registry["cifar20"].union == {"cifar10": "all", "cifar100": 10}
    classes = {*registry["cifar10"].classes, *sorted(registry["cifar100"].classes)[:10]}
    assert len(classes) == 20


def test_only_femnist_knows_its_writers():
    entries = [entry for entry in read_registry(COMMITTED).values() if isinstance(entry, Entry)]
    owned = {entry.name: entry.owner for entry in entries if entry.owner}
    assert owned == {"femnist": "writer_id"}
    (femnist,) = (entry for entry in entries if entry.owner)
    assert femnist.columns == ("image", "character", "writer_id")
    assert {entry.splits for entry in entries if entry != femnist} == {("train", "test")}
    assert femnist.splits == ("train",)


def test_committed_sizes_are_the_published_ones():
    registry = read_registry(COMMITTED)
    entries = {name: entry for name, entry in registry.items() if isinstance(entry, Entry)}
    classes = {name: len(entry.classes) for name, entry in entries.items()}
    assert classes == {
        "mnist": 10,
        "fashion_mnist": 10,
        "cifar10": 10,
        "cifar100": 100,
        "emnist": 47,
        "femnist": 62,
        "ag_news": 4,
    }
    assert (registry["emnist"].rows.train, registry["emnist"].rows.test) == (47 * 2400, 47 * 400)


def test_shape_tells_text_from_images(write):
    registry = read_registry(write({"image": ENTRY, "text": ENTRY | {"shape": [8]}}))
    assert [registry[name].is_text for name in ("image", "text")] == [False, True]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"revison": "main"}, "tiny has no key 'revison'; allowed are name, hub, host"),
        (
            {"revision": "main"},
            "tiny: revision = 'main' is not allowed: string should match pattern",
        ),
        (
            {"rows": {"train": 0, "test": 2}},
            r"tiny: rows\.train = 0 is not allowed: input should be greater than 0",
        ),
        ({"content": {"train": "0" * 64}}, r"tiny needs the key 'content\.test', which is missing"),
        (
            {"host": "ftp"},
            "tiny: host = 'ftp' is not allowed: input should be 'hub' or 'torchvision'",
        ),
        ({"hub": "tiny"}, "tiny: hub = 'tiny' is not allowed"),
        (
            {"classes": ["only"]},
            r"tiny: classes = \['only'\] is not allowed: tuple should have at least 2 items",
        ),
    ],
)
def test_wrong_key_is_named(write, change, message):
    with pytest.raises(InputError, match=message):
        read_registry(write({"tiny": ENTRY | change}))


def test_composed_of_others(write):
    registry = read_registry(write({"both": {"union": {"tiny": "all", "small": 1}}} | SMALL))
    assert registry["both"] == Composed(name="both", union={"tiny": "all", "small": 1})
    assert find(registry, "both").name == "both"


@pytest.mark.parametrize(
    ("union", "change", "message"),
    [
        (
            {"tiny": "some"},
            {},
            r"both: union\.tiny.* = 'some' is not allowed: input should be 'all'$",
        ),
        ({"tiny": 0}, {}, r"both: union\.tiny.* = 0 is not allowed"),
        ({}, {}, "both: union = {} is not allowed: dictionary should have at least 1 item"),
        ({"tiny": "all", "smal": 1}, {}, r"both\.union: smal must be a dataset of the table"),
        ({"both": "all"}, {}, r"both\.union: both must be a dataset .* images without owners"),
        ({"tiny": 1, "small": 1}, {"shape": [8]}, r"both\.union: small must be a dataset"),
        ({"tiny": 1, "small": 1}, {"owner": "writer"}, r"both\.union: small must be a dataset"),
        ({"tiny": 1, "small": 1}, {"shape": [3, 2, 2]}, "images of small and tiny differ in shape"),
    ],
)
def test_parts_that_do_not_fit(write, union, change, message):
    table = SMALL | {"small": ENTRY | change, "both": {"union": union}}
    with pytest.raises(InputError, match=message):
        read_registry(write(table))


def test_composed_has_no_other_key(write):
    with pytest.raises(InputError, match="both has no key 'hub'; allowed are name, union$"):
        read_registry(write(SMALL | {"both": {"union": {"tiny": 1}, "hub": "someone/both"}}))


@pytest.mark.parametrize("content", ["", "tiny", "tiny: 3", "- tiny"])
def test_not_a_table(write, content):
    with pytest.raises(InputError, match="must map the name of every dataset"):
        read_registry(write(content))


@pytest.mark.parametrize("content", ["tiny: [", None])
def test_unreadable(write, tmp_path, content):
    path = write(content) if content else tmp_path / "absent.yaml"
    with pytest.raises(InputError, match="cannot read .*yaml"):
        read_registry(path)


def test_find_lists_what_there_is(write):
    registry = read_registry(write({"tiny": ENTRY, "small": ENTRY}))
    assert find(registry, "tiny").name == "tiny"
    with pytest.raises(InputError, match="no dataset 'tinny'; choose from small, tiny"):
        find(registry, "tinny")
