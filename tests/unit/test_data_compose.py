"""Datasets made of classes of others: which rows, in which order, and what is said of them."""

from pathlib import Path

import numpy as np
import pytest
import yaml
from tiny_mirror import PIXELS, entry, folder, write_images

from clustered_fl.data import builtin, sources
from clustered_fl.data import dataset as datasets
from clustered_fl.data.compose import first_classes, join
from clustered_fl.data.dataset import Dataset
from clustered_fl.errors import InputError

OFFICIAL = entry(rows={"train": 6, "test": 3})


def made(labels: list[int], train_rows: int, classes: tuple[str, ...], **about) -> Dataset:
    """Rows whose colour is ten times their class plus their place."""
    y = np.array(labels)
    x = (10 * y + np.arange(len(y))).astype(np.uint8).reshape(-1, 1, 1, 1)
    properties = {"name": "tiny", "source": "mirror"} | about
    return datasets.build(x=x, y=y, train_rows=train_rows, classes=classes, **properties)


@pytest.fixture
def copy() -> Dataset:
    """Three of four classes, not in alphabetical order; its fourth test row is of class b."""
    return made([0, 1, 2, 0, 1, 2, 2, 1, 0], 6, ("c", "b", "a"), complete=False, note="3 of 4")


def test_first_classes_are_the_first_in_the_alphabet(copy):
    official = entry(rows={"train": 8, "test": 4}, classes=("a", "b", "c", "d"))
    two = first_classes(copy, 2, official)
    assert two.classes == ("a", "b")
    assert two.x.ravel().tolist() == [11, 22, 14, 25, 26, 17]
    assert two.y.tolist() == [1, 0, 1, 0, 0, 1]
    assert two.train_rows == 4
    assert (two.complete, two.note) == (True, "2 of its 3 classes here (a, b)")


def test_chosen_classes_that_lack_rows_are_partial(copy):
    official = entry(rows={"train": 4000, "test": 4}, classes=("a", "b", "c", "d"))
    two = first_classes(copy, 2, official)
    assert not two.complete
    assert two.note == "4 of 2,000 training rows; 2 of its 3 classes here (a, b)"


def test_a_stand_in_is_never_complete_in_parts():
    drawn = made([0, 1, 0, 1], 2, ("a", "b"), source="builtin", complete=False, note="demo")
    part = first_classes(drawn, 1, entry(rows={"train": 2, "test": 2}, classes=("a", "b")))
    assert (part.complete, part.note) == (False, "demo; 1 of its 2 classes here (a)")


def test_more_classes_than_there_are(copy):
    with pytest.raises(InputError, match="tiny from mirror has 3 classes, wanted are 4"):
        first_classes(copy, 4, OFFICIAL)


def test_training_rows_of_all_parts_come_first(copy):
    other = made([0, 1, 1, 0], 3, ("x", "y"), name="other")
    both = join("both", [other, copy])
    assert (both.name, both.train_rows) == ("both", 9)
    assert both.classes == ("x", "y", "c", "b", "a")
    assert both.y.tolist() == [0, 1, 1, 2, 3, 4, 2, 3, 4, 0, 4, 3, 2]
    assert both.x.ravel().tolist() == [0, 11, 12, 0, 11, 22, 3, 14, 25, 3, 26, 17, 8]
    assert (both.complete, both.note) == (False, "tiny: 3 of 4")


def test_parts_may_not_share_a_class(copy):
    with pytest.raises(InputError, match="both: more than one of its parts has a class 'b'"):
        join("both", [copy, made([0, 0], 1, ("b",))])


@pytest.fixture
def mirror(tmp_path) -> Path:
    for name in ("one", "two"):
        for split in PIXELS:
            write_images(folder(tmp_path).with_name(name), split)
    return tmp_path


def table(tmp_path: Path, **change) -> Path:
    """The classes of "one" and of "two" have the names of the file: only some of "two" may join."""
    plain = entry().model_dump(exclude={"name", "content"}, mode="json")
    both = {"union": {"one": "all", "two": 1}}
    parts = {name: plain | {"hub": f"someone/{name}"} for name in ("one", "two")}
    path = tmp_path / "datasets.yaml"
    path.write_text(yaml.safe_dump(parts | {"both": both} | change))
    return path


def test_prepare_reads_every_part(mirror, tmp_path):
    registry = table(tmp_path, both={"union": {"two": 2}})
    found = sources.prepare("both", "mirror", mirror, mirror, True, registry)
    np.testing.assert_array_equal(found.y, [0, 1, 0, 1, 1, 0])
    np.testing.assert_array_equal(found.x[:4], PIXELS["train"][[0, 1, 3, 4]].transpose(0, 3, 1, 2))
    assert (found.name, found.complete) == ("both", True)
    assert found.note == "two: 2 of its 3 classes here (a, b)"


def test_prepare_requires_complete_classes(mirror, tmp_path):
    write_images(mirror / "someone" / "two", "train", order=slice(1, 6))
    registry = table(tmp_path, both={"union": {"two": 2}})
    assert not sources.prepare("both", "mirror", mirror, mirror, registry=registry).complete
    with pytest.raises(
        InputError, match=r"complete both is required, .* `mirror` has only \(two: 3 of 4 training"
    ):
        sources.prepare("both", "mirror", mirror, mirror, True, registry)


def test_prepare_requires_a_whole_part_to_be_complete(mirror, tmp_path):
    write_images(mirror / "someone" / "one", "train", order=slice(1, 6))
    registry = table(tmp_path, both={"union": {"one": "all"}})
    assert sources.prepare("both", "mirror", mirror, mirror, registry=registry).note == (
        "one: 5 of 6 training rows"
    )
    with pytest.raises(InputError, match=r"someone/one holds only 5 of 6 training rows"):
        sources.prepare("both", "mirror", mirror, mirror, True, registry)


def test_prepare_names_a_class_that_two_parts_have(mirror, tmp_path):
    with pytest.raises(InputError, match="both: more than one of its parts has a class 'a'"):
        sources.prepare("both", "mirror", mirror, mirror, registry=table(tmp_path))


@pytest.mark.parametrize("classes", ["all", 3])
def test_a_composed_stand_in_is_never_complete(tmp_path, monkeypatch, classes):
    few = builtin.STAND_INS["shapes"]._replace(rows=(40, 20))
    monkeypatch.setitem(builtin.STAND_INS, "shapes", few)
    drawn = entry().model_dump(exclude={"name", "content"}, mode="json") | {"stand_in": "shapes"}
    registry = table(tmp_path, drawn=drawn, some={"union": {"drawn": classes}})
    found = sources.prepare("some", "builtin", tmp_path, tmp_path, registry=registry)
    assert (found.complete, found.note.startswith(builtin.NOTE)) == (False, True)
    with pytest.raises(InputError, match="the complete .* is required, but the source `builtin`"):
        sources.prepare("some", "builtin", tmp_path, tmp_path, True, registry)
