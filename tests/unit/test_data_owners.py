"""Who wrote a row: read from both layouts of FEMNIST, numbered, divided as LEAF does."""

from pathlib import Path

import numpy as np
import pytest
from tiny_mirror import TEXT, entry, folder, write, write_owned

from clustered_fl.data import sources
from clustered_fl.data.dataset import Dataset, Split
from clustered_fl.data.owners import divide, numbered
from clustered_fl.errors import InputError

OWNERS = ["f2"] * 20 + ["f10"] * 2 + ["f1"] + ["f3"] * 13
# Sorted as strings.
NUMBER = {"f1": 0, "f10": 1, "f2": 2, "f3": 3}
OWNED = entry(owner="writer", rows={"train": 36, "test": 0})


@pytest.fixture
def hub(tmp_path) -> Path:
    """One split, as on the hub; the colour of a row is its place there."""
    write_owned(folder(tmp_path), "train", OWNERS, list(range(36)))
    return tmp_path


def colours(dataset: Dataset) -> tuple[list[int], list[int]]:
    """Colour of every training and of every test row."""
    found = dataset.x[:, 0, 0, 0].tolist()
    return found[: dataset.train_rows], found[dataset.train_rows :]


def of_owner(dataset: Dataset, name: str) -> tuple[int, int]:
    """Training and test rows of one owner."""
    train, test = np.split(dataset.owner == NUMBER[name], [dataset.train_rows])
    return int(train.sum()), int(test.sum())


def test_one_split_is_divided_per_owner(hub):
    dataset = sources.read_mirror(hub, OWNED, require_complete=True)
    assert {name: of_owner(dataset, name) for name in NUMBER} == {
        "f1": (1, 0),
        "f10": (1, 1),
        "f2": (18, 2),
        "f3": (11, 2),
    }
    train, test = colours(dataset)
    assert (train, test) == (sorted(train), sorted(test))
    assert sorted(train + test) == list(range(36))
    assert dataset.owner.tolist() == [NUMBER[OWNERS[colour]] for colour in train + test]
    assert dataset.y.tolist() == [colour % 3 for colour in train + test]


def test_test_rows_are_drawn_not_the_last(hub):
    _, test = colours(sources.read_mirror(hub, OWNED))
    assert test != [18, 19, 21, 34, 35]


def test_division_ignores_how_owners_are_mixed(hub, tmp_path):
    mixed = np.random.default_rng(0).permutation(OWNERS).tolist()
    rows = {name: [i for i, owner in enumerate(OWNERS) if owner == name] for name in NUMBER}
    numbers = [rows[name].pop(0) for name in mixed]
    write_owned(folder(tmp_path / "mixed"), "train", mixed, numbers)
    ours, theirs = (
        colours(sources.read_mirror(place, OWNED)) for place in (hub, tmp_path / "mixed")
    )
    assert [sorted(part) for part in theirs] == [sorted(part) for part in ours]
    assert theirs != ours


def test_division_ignores_owners_that_are_missing(hub, tmp_path):
    kept = [i for i, name in enumerate(OWNERS) if name != "f2"]
    write_owned(folder(tmp_path / "fewer"), "train", [OWNERS[i] for i in kept], kept)
    _, test = colours(sources.read_mirror(hub, OWNED))
    _, fewer = colours(sources.read_mirror(tmp_path / "fewer", OWNED))
    assert fewer == [colour for colour in test if OWNERS[colour] != "f2"]


def test_a_copy_that_is_divided_already_stays_so(tmp_path):
    write_owned(folder(tmp_path), "train", list("cac"), [0, 1, 2])
    write_owned(folder(tmp_path), "test", list("ba"), [3, 4])
    dataset = sources.read_mirror(tmp_path, OWNED)
    assert colours(dataset) == ([0, 1, 2], [3, 4])
    assert dataset.owner.tolist() == [2, 0, 2, 1, 0]
    assert (dataset.owner.dtype, dataset.note) == (np.int64, "5 of 36 rows")


def test_half_a_test_split_is_not_divided_anew(hub):
    write_owned(folder(hub), "test", ["f1"], [40])
    path = folder(hub) / "test-00000-of-00001.parquet"
    path.rename(path.with_name("test-00000-of-00002.parquet"))
    with pytest.raises(InputError, match="has 1 files of its test split, expected 2"):
        sources.read_mirror(hub, OWNED)


def test_without_owners_there_is_nothing_to_divide_by(hub):
    with pytest.raises(InputError, match="has no test split"):
        sources.read_mirror(hub, entry(rows={"train": 36, "test": 0}))


def test_a_test_split_that_was_published_is_missed(hub):
    with pytest.raises(InputError, match="has no test split"):
        sources.read_mirror(hub, entry(owner="writer", rows={"train": 36, "test": 4}))


def test_owners_are_ignored_unless_asked_for(tmp_path):
    for split in ("train", "test"):
        write_owned(folder(tmp_path), split, list("abc"), [0, 1, 2])
    assert sources.read_mirror(tmp_path, entry()).owner.size == 0


@pytest.mark.parametrize(
    ("owners", "column", "message"),
    [
        (list("ab"), "author", "has the columns .*, expected img and label and author$"),
        ([1, 2], "writer", "column writer must hold strings, not int64$"),
        (["a", None], "writer", "has empty cells: delete it and fetch someone/tiny again"),
    ],
)
def test_owners_that_cannot_be_read(tmp_path, owners, column, message):
    write_owned(folder(tmp_path), "train", owners, [0, 1])
    with pytest.raises(InputError, match=message):
        sources.read_mirror(tmp_path, entry(owner=column, rows={"train": 2, "test": 0}))


def test_texts_have_owners_too(tmp_path):
    columns = {"text": [f"word{i}" for i in range(4)], "label": [0, 1] * 2, "writer": list("aabb")}
    write(folder(tmp_path) / "train-00000-of-00001.parquet", columns)
    diary = entry(**(TEXT | {"owner": "writer", "rows": {"train": 4, "test": 0}}))
    dataset = sources.read_mirror(tmp_path, diary)
    assert (dataset.train_rows, dataset.owner.tolist()) == (2, [0, 1, 0, 1])


def test_numbers_follow_names_of_both_splits():
    def split(*names: str) -> Split:
        return Split(np.empty(0), np.empty(0), (), np.array(names, str))

    assert numbered(split("f10", "f9"), split("f1", "f9")).tolist() == [1, 2, 0, 2]
    assert numbered(split(), split()).tolist() == []


@pytest.mark.parametrize("rows", range(1, 41))
def test_training_rows_per_owner_as_in_leaf(rows):
    """LEAF: int(0.9 n), and one of two."""
    whole = Split(np.arange(rows), np.arange(rows), (), np.array(["a"] * rows))
    train, test = divide(whole).values()
    assert len(train.labels) == (1 if rows <= 2 else int(rows * 0.9 + 1e-9))
    assert sorted([*train.labels, *test.labels]) == list(range(rows))
