"""Canonical dataset files: what is written comes back, and damage is reported in one sentence."""

from dataclasses import replace

import numpy as np
import pytest
from safetensors import safe_open

from clustered_fl.data import dataset as datasets
from clustered_fl.data.dataset import Dataset
from clustered_fl.errors import InputError


@pytest.fixture
def images() -> Dataset:
    random = np.random.default_rng(0)
    x = random.integers(0, 256, (12, 1, 4, 4), dtype=np.uint8)
    return datasets.build("tiny", "builtin", x, np.arange(12) % 3, 9, ("a", "b", "c"), note="demo")


@pytest.fixture
def text() -> Dataset:
    x = np.arange(15, dtype=np.int32).reshape(3, 5) % 4
    words = ("<pad>", "<unk>", "<eos>", "word")
    return datasets.build(
        "text", "mirror", x, np.array([0, 1, 0]), 2, ("a", "b"), False, "2", words
    )


@pytest.fixture
def owned(images) -> Dataset:
    who = np.array([1, 0, 2] * 4)
    return datasets.build("tiny", "mirror", images.x, images.y, 9, images.classes, owner=who)


def same(a: Dataset, b: Dataset) -> bool:
    arrays = ("x", "y", "owner")
    pairs = [(getattr(a, name), getattr(b, name)) for name in arrays]
    nothing = dict.fromkeys(arrays)
    return (
        all(np.array_equal(one, other) and one.dtype == other.dtype for one, other in pairs)
        and vars(a) | nothing == vars(b) | nothing
    )


@pytest.mark.parametrize("kind", ["images", "text", "owned"])
def test_load_returns_what_save_wrote(kind, request, tmp_path):
    dataset = request.getfixturevalue(kind)
    datasets.save(dataset, tmp_path / "new" / "d.safetensors")
    assert same(datasets.load(tmp_path / "new" / "d.safetensors"), dataset)


def test_equal_datasets_give_equal_bytes(images, tmp_path):
    for name in ("first", "second"):
        datasets.save(images, tmp_path / name)
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()


@pytest.mark.parametrize(
    "change",
    [
        lambda d: {"x": d.x ^ (np.indices(d.x.shape).sum(0) == 0)},
        lambda d: {"y": d.y[::-1].copy()},
        lambda d: {"x": d.x.reshape(12, 1, 2, 8)},
        lambda d: {"classes": ("a", "b", "d")},
        lambda d: {"train_rows": 8},
    ],
    ids=["pixel", "labels", "shape", "class name", "split"],
)
def test_digest_notices(images, change):
    assert datasets.content_digest(images) == images.digest
    assert datasets.content_digest(replace(images, **change(images))) != images.digest


def test_data_without_owners_keep_digest_and_arrays(images, tmp_path):
    """Published results name digests from before there were owners."""
    assert images.digest == "3a1f380142068cc8c54750bd02878c7fcdde57d00b5441f39159178eb76227f9"
    datasets.save(images, tmp_path / "d.safetensors")
    with safe_open(tmp_path / "d.safetensors", framework="numpy") as stored:
        assert set(stored.keys()) == {"x", "y"}


def test_digest_notices_owners(images, owned):
    assert owned.digest != images.digest
    assert datasets.content_digest(replace(images, owner=owned.owner)) == owned.digest
    assert datasets.content_digest(replace(images, owner=owned.owner[::-1])) != owned.digest


def test_altered_owner_is_found(owned, tmp_path):
    path = tmp_path / "d.safetensors"
    datasets.save(owned, path)
    content = bytearray(path.read_bytes())
    content[content.index(owned.owner.tobytes())] = 2
    path.write_bytes(content)
    with pytest.raises(InputError, match="content was altered"):
        datasets.load(path)


def test_digest_ignores_memory_layout(images):
    strided = replace(images, x=np.asfortranarray(images.x))
    assert datasets.content_digest(strided) == images.digest


def test_missing_file(tmp_path):
    with pytest.raises(InputError, match=r"absent\.safetensors does not exist: run the dataset"):
        datasets.load(tmp_path / "absent.safetensors")


@pytest.mark.parametrize("keep", [0, 5, 100, -1], ids=["empty", "no header", "in header", "tail"])
def test_truncated_file(images, tmp_path, keep):
    path = tmp_path / "d.safetensors"
    datasets.save(images, path)
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(InputError, match=r"d\.safetensors is damaged \(it is not a whole dataset"):
        datasets.load(path)


def test_foreign_file(tmp_path):
    from safetensors.numpy import save_file

    save_file({"weights": np.zeros(3)}, tmp_path / "model.safetensors")
    with pytest.raises(InputError, match="model.safetensors is damaged .it is not a whole"):
        datasets.load(tmp_path / "model.safetensors")


def test_altered_bytes_are_found_and_the_file_is_set_aside(images, tmp_path):
    path = tmp_path / "d.safetensors"
    datasets.save(images, path)
    content = bytearray(path.read_bytes())
    content[content.index(images.x[3].tobytes())] ^= 1
    path.write_bytes(content)
    with pytest.raises(InputError, match="content was altered .* is now d.safetensors.damaged"):
        datasets.load(path)
    assert [each.name for each in tmp_path.iterdir()] == ["d.safetensors.damaged"]


IMAGE, LABEL = np.zeros((4, 1, 2, 2), np.uint8), np.zeros(4, np.int64)


@pytest.mark.parametrize(
    ("x", "y", "train_rows", "words", "message"),
    [
        (IMAGE.astype(float), LABEL, 3, (), "x must be uint8 with 4 axes, not float64"),
        (IMAGE[:, 0], LABEL, 3, (), r"with 4 axes, not uint8 of shape \(4, 2, 2\)"),
        (IMAGE, LABEL[:3], 3, (), r"one label per row of x \(4\)"),
        (IMAGE, LABEL.astype(np.int32), 3, (), "y must be int64"),
        (IMAGE, LABEL, 4, (), "must have training and test rows, not 4 training rows of 4"),
        (IMAGE, LABEL + 2, 3, (), r"labels must lie in 0\.\.1, not 2\.\.2"),
        (IMAGE, LABEL - 1, 3, (), r"labels must lie in 0\.\.1, not -1\.\.-1"),
        (np.full((4, 3), 9, np.int32), LABEL, 3, ("a",), r"token ids must lie in 0\.\.0, not 9"),
    ],
)
def test_build_refuses(x, y, train_rows, words, message):
    with pytest.raises(InputError, match=message):
        datasets.build("bad", "mirror", x, y, train_rows, ("a", "b"), vocabulary=words)


@pytest.mark.parametrize(
    ("owner", "message"),
    [
        (np.zeros(4, np.int32), "owner must be int64 with one owner per row of x"),
        (np.array(["a"] * 4), "owner must be int64 .* not <U1"),
        (np.zeros(3, np.int64), r"one owner per row of x \(4\), not int64 \(3,\)"),
        (np.array([0, 2, 0, 2]), r"numbered 0\.\.1 without gaps, not 0\.\.2"),
        (np.array([1, 2, 3, 4]), r"numbered 0\.\.3 without gaps, not 1\.\.4"),
        (np.array([-1, 0, 1, 2]), r"numbered 0\.\.3 without gaps, not -1\.\.2"),
    ],
)
def test_build_refuses_owners(owner, message):
    with pytest.raises(InputError, match=message):
        datasets.build("bad", "mirror", IMAGE, LABEL, 3, ("a", "b"), owner=owner)
