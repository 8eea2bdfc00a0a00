"""Downloading, with copies of a tiny mirror in the place of the network; choosing a source."""

import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import datasets
import numpy as np
import pytest
import yaml
from tiny_mirror import LABELS, PIXELS, entry, folder, write_mirror, write_owned

from clustered_fl.data import download as downloads
from clustered_fl.data import sources
from clustered_fl.data.registry import Entry
from clustered_fl.errors import InputError


@pytest.fixture(autouse=True)
def network(monkeypatch):
    """A network, as far as anything asks before it downloads."""
    monkeypatch.setattr(
        downloads.socket, "create_connection", lambda *_: SimpleNamespace(close=int)
    )


@pytest.fixture
def mirror(tmp_path) -> Path:
    return write_mirror(tmp_path)


@pytest.fixture
def registry(tmp_path) -> Path:
    properties = entry().model_dump(exclude={"name", "content"})
    properties |= {"classes": ["a", "b", "c"], "shape": [3, 4, 5]}
    path = tmp_path / "datasets.yaml"
    path.write_text(
        yaml.safe_dump({"tiny": properties, "drawn": properties | {"stand_in": "shapes"}})
    )
    return path


@pytest.fixture
def hub(mirror, monkeypatch):
    """A hub whose downloads are copies of the mirror; `failures` makes the first ones fail."""
    state = SimpleNamespace(failures=0, calls=0, waits=[])

    def fetch(_: Entry, target: Path) -> None:
        state.calls += 1
        if state.calls <= state.failures:
            raise ConnectionError("Name or service not known\nat great length")
        shutil.copytree(folder(mirror), target, dirs_exist_ok=True)

    monkeypatch.setitem(downloads.FETCH, "hub", fetch)
    monkeypatch.setattr(downloads.time, "sleep", state.waits.append)
    return state


def test_download_equals_the_mirror_and_happens_once(mirror, registry, hub, tmp_path):
    arguments = {"mirror": mirror, "cache": tmp_path / "cache", "registry": registry}
    here = sources.prepare("tiny", "mirror", **arguments)
    first, again = (sources.prepare("tiny", "download", **arguments) for _ in range(2))
    assert (first.source, first.digest, again.digest) == ("download", here.digest, here.digest)
    assert hub.calls == 1


def test_download_tries_again(hub, tmp_path):
    hub.failures = 2
    downloads.download(entry(), tmp_path / "cache")
    assert (hub.calls, hub.waits) == (3, [1, 2])
    assert len(list((tmp_path / "cache").iterdir())) == 2


def test_download_gives_up_with_one_sentence(hub, tmp_path):
    hub.failures = 99
    with pytest.raises(InputError) as caught:
        downloads.download(entry(), tmp_path / "cache")
    assert str(caught.value) == (
        f"cannot download someone/tiny into {tmp_path}/cache after 3 attempts (ConnectionError: "
        "Name or service not known): check the network, or copy the files by hand and use the "
        "data source `mirror`"
    )
    assert (hub.calls, hub.waits) == (3, [1, 2])


@pytest.mark.parametrize("host", ["hub", "torchvision"])
def test_without_network_nothing_is_tried(host, monkeypatch, tmp_path):
    """Of the libraries each attempt takes half a minute."""

    def unreachable(address, patience):
        raise OSError(f"{address[0]} is unknown")

    monkeypatch.setattr(downloads.socket, "create_connection", unreachable)
    monkeypatch.setattr(downloads, "getproxies", dict)
    with pytest.raises(InputError, match=r"cannot be reached \(.* is unknown\).*mirror=<folder>"):
        downloads.download(entry(host=host), tmp_path / "cache")
    assert not list(tmp_path.rglob("*.parquet"))


@pytest.mark.parametrize(
    ("address", "asked"),
    [
        ("https://somewhere", ("somewhere", 443)),
        ("http://somewhere/files.zip", ("somewhere", 80)),
        ("http://localhost:8080", ("localhost", 8080)),
        ("somewhere", ("somewhere", 443)),
    ],
)
def test_the_host_is_asked_at_the_port_of_the_download(monkeypatch, address, asked):
    tried = []

    def connect(place, patience):
        tried.append(place)
        return SimpleNamespace(close=int)

    monkeypatch.setattr(downloads.socket, "create_connection", connect)
    monkeypatch.setattr(downloads, "getproxies", dict)
    downloads.require_network(entry(), address)
    assert tried == [asked]


def test_behind_a_proxy_the_libraries_try(monkeypatch):
    monkeypatch.setattr(downloads, "getproxies", lambda: {"https": "proxy:80"})
    monkeypatch.delattr(downloads.socket, "create_connection")
    downloads.require_network(entry(), "https://somewhere")


def test_half_a_download_is_continued(hub, mirror, tmp_path):
    shutil.copytree(folder(mirror), tmp_path / "cache")
    (tmp_path / "cache" / "test-00000-of-00001.parquet").unlink()
    downloads.download(entry(), tmp_path / "cache")
    assert hub.calls == 1


def test_the_hub_is_asked_for_the_pinned_revision(monkeypatch, mirror, registry, tmp_path):
    load, asked = datasets.load_dataset, []

    def from_mirror(name: str, revision: str, **options) -> datasets.Dataset:
        asked.append((name, revision))
        return load(str(mirror / name), **options)

    monkeypatch.setattr(datasets, "load_dataset", from_mirror)
    arguments = {"mirror": mirror, "cache": tmp_path / "cache", "registry": registry}
    here = sources.prepare("tiny", "mirror", **arguments)
    there = sources.prepare("tiny", "download", **arguments)
    assert asked == [("someone/tiny", "0" * 40)] * 2
    assert there.digest == here.digest
    left = sorted(path.name for path in (tmp_path / "cache" / "someone" / "tiny").iterdir())
    assert left == ["test-00000-of-00001.parquet", "train-00000-of-00001.parquet"]


def test_one_split_is_all_that_is_asked_for_where_there_is_one(monkeypatch, tmp_path):
    owners, asked = list("aabb"), []
    write_owned(folder(tmp_path), "train", owners, [10, 11, 12, 13])
    load = datasets.load_dataset

    def from_mirror(name: str, revision: str, split: str, **options) -> datasets.Dataset:
        asked.append(split)
        return load(str(tmp_path / name), split=split, **options)

    monkeypatch.setattr(datasets, "load_dataset", from_mirror)
    owned = entry(owner="writer", rows={"train": 4, "test": 0})
    for _ in range(2):
        downloads.download(owned, folder(tmp_path / "cache"))
    assert asked == ["train"]
    here, there = (sources.read_mirror(place, owned) for place in (tmp_path, tmp_path / "cache"))
    assert here.digest == there.digest
    assert here.owner.tolist() == [0, 1, 0, 1]


def test_nothing_is_downloaded_without_a_pinned_revision(tmp_path):
    with pytest.raises(InputError, match="tiny has no pinned revision .* use the source `mirror`"):
        downloads.download(entry(revision=None), tmp_path / "cache")


def test_emnist_is_laid_out_like_a_mirror_and_upright(monkeypatch, tmp_path):
    grey = {"train": PIXELS["train"][..., 0], "test": PIXELS["test"][..., 0]}

    class EMNIST:
        url = "https://somewhere/letters.zip"

        def __init__(self, root, split, train, download):
            assert (split, download) == ("tiny", True)
            root.mkdir(parents=True, exist_ok=True)
            part = "train" if train else "test"
            self.data = SimpleNamespace(numpy=lambda: grey[part].transpose(0, 2, 1))
            self.targets = SimpleNamespace(numpy=lambda: np.array(LABELS[part]))

    library = SimpleNamespace(datasets=SimpleNamespace(EMNIST=EMNIST))
    monkeypatch.setitem(sys.modules, "torchvision", library)
    letters = entry(host="torchvision", revision=None, shape=(1, 4, 5), column="image")
    downloads.download(letters, folder(tmp_path))
    dataset = sources.read_mirror(tmp_path, letters, require_complete=True)
    np.testing.assert_array_equal(dataset.x[:6, 0], grey["train"])
    assert dataset.y.tolist() == LABELS["train"] + LABELS["test"]
    assert not (folder(tmp_path) / "raw").exists()


@pytest.mark.parametrize(
    ("name", "source", "message"),
    [
        ("tinny", "mirror", "no dataset 'tinny'; choose from drawn, tiny"),
        ("tiny", "cloud", "no data source 'cloud'; choose from builtin, mirror, download"),
        ("tiny", "builtin", "tiny has no built-in stand-in yet"),
    ],
)
def test_prepare_refuses(mirror, registry, name, source, message):
    with pytest.raises(InputError, match=message):
        sources.prepare(name, source, mirror, mirror, registry=registry)


def test_a_stand_in_is_never_complete(mirror, registry):
    with pytest.raises(
        InputError, match="the complete drawn is required, but the source `builtin`"
    ):
        sources.prepare(
            "drawn", "builtin", mirror, mirror, require_complete=True, registry=registry
        )
