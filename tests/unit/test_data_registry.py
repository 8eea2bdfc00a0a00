"""The table of datasets: what is committed holds, and a slip of the pen is named."""

from pathlib import Path

import pytest
import yaml

from clustered_fl.data.builtin import STAND_INS
from clustered_fl.data.registry import find, read_registry
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


@pytest.fixture
def write(tmp_path):
    def write(content) -> Path:
        path = tmp_path / "datasets.yaml"
        path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
        return path

    return write


def test_committed_table_is_valid():
    registry = read_registry(COMMITTED)
    assert {"mnist", "cifar10", "ag_news"} <= set(registry)
    for entry in registry.values():
        assert len(set(entry.classes)) == len(entry.classes)
        assert entry.stand_in is None or entry.stand_in in STAND_INS


def test_committed_sizes_are_the_published_ones():
    registry = read_registry(COMMITTED)
    classes = {name: len(entry.classes) for name, entry in registry.items()}
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
        ({"revison": "main"}, r"tiny\.revison: extra inputs are not permitted; keys are hub, host"),
        ({"revision": "main"}, r"tiny\.revision: string should match pattern"),
        ({"rows": {"train": 0, "test": 2}}, r"tiny\.rows\.train: input should be greater than 0"),
        ({"content": {"train": "0" * 64}}, r"tiny\.content\.test: field required"),
        ({"host": "ftp"}, r"tiny\.host: input should be 'hub' or 'torchvision'"),
        ({"hub": "tiny"}, r"tiny\.hub"),
        ({"classes": ["only"]}, r"tiny\.classes"),
    ],
)
def test_wrong_key_is_named(write, change, message):
    with pytest.raises(InputError, match=message):
        read_registry(write({"tiny": ENTRY | change}))


@pytest.mark.parametrize("content", ["", "tiny", "tiny: 3", "- tiny"])
def test_not_a_table(write, content):
    with pytest.raises(InputError, match="must map the name of every dataset"):
        read_registry(write(content))


@pytest.mark.parametrize("content", ["tiny: [", None])
def test_unreadable(write, tmp_path, content):
    path = write(content) if content else tmp_path / "absent.yaml"
    with pytest.raises(InputError, match="cannot read the table of datasets .*yaml"):
        read_registry(path)


def test_find_lists_what_there_is(write):
    registry = read_registry(write({"tiny": ENTRY, "small": ENTRY}))
    assert find(registry, "tiny").name == "tiny"
    with pytest.raises(InputError, match="no dataset 'tinny'; choose from small, tiny"):
        find(registry, "tinny")
