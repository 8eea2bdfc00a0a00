"""Damaged and strange files of data, and arrays: what is tried, and which result would be right."""

import io
import random
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from tiny_mirror import LABELS, PIXELS, encoded, entry, folder, write, write_mirror

import clustered_fl
from clustered_fl.data import dataset as datasets
from clustered_fl.data import federation as federations
from clustered_fl.data import parquet, sources
from clustered_fl.data.partitions import build_federation
from clustered_fl.data.registry import Content


class Damage(NamedTuple):
    """What is damaged, an attempt to use it, and whether what comes out is what went in."""

    what: str
    attempt: Callable[[], Any]
    may_be: Callable[[Any], bool]


Files = Callable[[random.Random], Damage]


def damaged(whole: bytes, draw: random.Random) -> tuple[str, bytes]:
    """How bytes are damaged, and what is left of them."""
    place = draw.randrange(len(whole))
    bit = bytes([whole[place] ^ 1 << draw.randrange(8)])
    size = draw.randrange(1, 64)
    return draw.choice(
        [
            (f"bit at {place}", whole[:place] + bit + whole[place + 1 :]),
            (f"cut at {place}", whole[:place]),
            (f"zeros at {place}", whole[:place] + bytes(size) + whole[place + size :]),
            (f"noise at {place}", whole[:place] + draw.randbytes(size) + whole[place + size :]),
            (f"{size} bytes more", whole + draw.randbytes(size)),
            ("empty", b""),
        ]
    )


def mirror(place: Path) -> Files:
    """Files of a dataset whose digests are known; only its own rows may come out."""
    write_mirror(place)
    plain = entry()
    splits = {split: parquet.read_split(folder(place), split, plain) for split in PIXELS}
    content = Content(**{name: parquet.content_digest(split) for name, split in splits.items()})
    known = entry(content=content)
    digest = sources.read_mirror(place, known).digest
    whole = {path: path.read_bytes() for path in sorted(folder(place).iterdir())}

    def damage(draw: random.Random) -> Damage:
        path = draw.choice(list(whole))
        other = next(content for each, content in whole.items() if each != path)
        what, bytes_ = draw.choice([*[damaged(whole[path], draw)] * 9, ("the other split", other)])

        def attempt() -> datasets.Dataset:
            for each, content in whole.items():
                each.write_bytes(content)
            path.write_bytes(bytes_)
            return sources.read_mirror(place, known)

        return Damage(f"{path.name}: {what}", attempt, lambda found: found.digest == digest)

    return damage


def _png(width: int, height: int, content: bytes) -> bytes:
    """A grey PNG that says it is so large."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        )

    size = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    parts = chunk(b"IHDR", size) + chunk(b"IDAT", content) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts


def images(place: Path) -> Files:
    """Own images of which no digest is known: rows that no reader can make sense of."""
    write_mirror(place)
    good = [encoded(pixels) for pixels in PIXELS["train"]]
    labels = LABELS["train"]
    names = {"info": {"features": {"label": {"names": ["a", "b", "c"]}}}}
    cells = {
        "a decompression bomb": _png(60_000, 60_000, zlib.compress(bytes(10_000))),
        "a larger one": _png(2**31 - 1, 2**31 - 1, b""),
        "a warning's worth": _png(11_000, 11_000, zlib.compress(bytes(10_000))),
        "another size": encoded(np.zeros((5, 4, 3), np.uint8))["bytes"],
        "a text": b"no image at all",
        "nothing": b"",
        "a cut image": good[0]["bytes"][:40],
    }

    def strange(draw: random.Random) -> dict[str, tuple[dict, dict]]:
        row, (what, cell) = draw.randrange(6), draw.choice(list(cells.items()))
        images_ = [{"bytes": cell} if n == row else each for n, each in enumerate(good)]
        wrong = [-1 if n == row else each for n, each in enumerate(labels)]
        return {
            what: ({"img": images_, "label": labels}, names),
            "a negative label": ({"img": good, "label": wrong}, names),
            "a label too large": ({"img": good, "label": [99, *labels[1:]]}, names),
            "labels as texts": ({"img": good, "label": list("abcabc")}, names),
            "labels as fractions": ({"img": good, "label": [0.5] * 6}, names),
            "labels as truths": ({"img": good, "label": [True] * 6}, names),
            "an empty label": ({"img": good, "label": [None, *labels[1:]]}, names),
            "an empty image": ({"img": [None, *good[1:]], "label": labels}, names),
            "images as texts": ({"img": ["x"] * 6, "label": labels}, names),
            "images as numbers": ({"img": labels, "label": labels}, names),
            "images without bytes": ({"img": [{"path": "x"}] * 6, "label": labels}, names),
            "no labels": ({"img": good}, names),
            "no rows": ({"img": pa.array([], pa.binary()), "label": pa.array([], "int64")}, names),
            "fewer classes": ({"img": good, "label": [0] * 6}, names),
            "a foreign class": ({"img": good, "label": labels}, _named(["a", "b", "dog"])),
            "a class twice": ({"img": good, "label": labels}, _named(["a", "b", "b"])),
            "classes of no list": ({"img": good, "label": labels}, _named(3)),
            "a header of no mapping": ({"img": good, "label": labels}, [1]),
        }

    def damage(draw: random.Random) -> Damage:
        what, (columns, header) = draw.choice(list(strange(draw).items()))

        def attempt() -> datasets.Dataset:
            write(folder(place) / "train-00000-of-00001.parquet", columns, header)
            write(folder(place) / "test-00000-of-00001.parquet", columns, header)
            return sources.read_mirror(place, entry(rows={"train": 6, "test": 6}))

        return Damage(what, attempt, lambda _: False)

    return damage


def _named(names: Any) -> dict[str, Any]:
    return {"info": {"features": {"label": {"names": names}}}}


def prepared(place: Path) -> Files:
    """What the workflow has made of data: only the same arrays may come out."""
    place.mkdir()
    paths = {"data": place / "mnist.safetensors", "federation": place / "federation.safetensors"}
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (60, 1, 6, 6), dtype=np.uint8)
    data = datasets.build("mnist", "builtin", x, np.arange(60) % 5, 50, tuple("abcde"))
    clients = build_federation(data, 0, "label_swap", clients=4, groups=2, samples=8)
    datasets.save(data, paths["data"])
    federations.save(clients, paths["federation"], data.digest)
    whole = {kind: path.read_bytes() for kind, path in paths.items()}

    def damage(draw: random.Random) -> Damage:
        kind = draw.choice(list(paths))
        what, bytes_ = damaged(whole[kind], draw)

        def attempt() -> Any:
            paths[kind].write_bytes(bytes_)
            if kind == "data":
                return datasets.load(paths[kind], "mnist")
            return federations.load(paths[kind], data.digest)[0]

        known = data if kind == "data" else clients
        return Damage(f"{kind}: {what}", attempt, lambda found: _same(found, known))

    return damage


def _same(one: Any, other: Any) -> bool:
    """Whether arrays and numbers are the same; texts tell where data come from, and decide none."""
    pairs = [(value, getattr(other, name)) for name, value in vars(one).items()]
    kept = ((a, b) for a, b in pairs if not isinstance(a, str | bool))
    return all(
        all(map(np.array_equal, a, b)) and len(a) == len(b)
        if isinstance(a, tuple)
        else np.array_equal(a, b)
        for a, b in kept
    )


def arrays(place: Path) -> Files:
    """Images, labels and owners in the form of arrays, as a file `.npz` gives them."""
    place.mkdir()
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (40, 8, 8), dtype=np.uint8)
    y, owners = np.arange(40) % 4, np.arange(40) // 10
    good = {"x": x, "y": y, "owners": owners}
    wrong = {
        "x": [x / 255, x[:, 0], x[:0], x[:39], x.astype(np.int64) - 300, x.astype(str), 3, None],
        "y": [
            y[:39],
            y[:, None],
            y / 0.3,
            y[:0],
            np.full(40, np.nan),
            y.astype(object) / 2,
            None,
            "abc",
            3,
        ],
        "owners": [owners[:39], owners[:, None], owners[:0], np.arange(40), None, "abc", 3],
    }

    def damage(draw: random.Random) -> Damage:
        key = draw.choice(list(wrong))
        number = draw.randrange(len(wrong[key]))
        given = good | {key: wrong[key][number]}

        def attempt() -> Any:
            with io.BytesIO() as file:
                np.savez(file, **given)
                file.seek(0)
                read = dict(np.load(file, allow_pickle=True))
            return clustered_fl.federation(**read)

        return Damage(f"{key}, number {number}", attempt, lambda _: False)

    return damage


DAMAGED: dict[str, Callable[[Path], Files]] = {
    "files of a mirror": mirror,
    "rows of user-supplied images": images,
    "prepared data and federations": prepared,
    "user-supplied arrays": arrays,
}
