"""Folders laid out as the hub lays them out, small enough for tests."""

import io
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from clustered_fl.data.registry import Entry

RANDOM = np.random.default_rng(0)
PIXELS = {"train": RANDOM.integers(0, 256, (6, 4, 5, 3), dtype=np.uint8)}
PIXELS["test"] = RANDOM.integers(0, 256, (3, 4, 5, 3), dtype=np.uint8)
LABELS = {"train": [0, 1, 2, 0, 1, 2], "test": [2, 1, 0]}
TEXTS = {"train": ["the cat", "the dog", "A cat!"], "test": ["the bird"]}
FEATURES = {
    "img": {"_type": "Image"},
    "label": {"names": ["a", "b", "c"], "_type": "ClassLabel"},
}
HEADER = {"info": {"features": FEATURES}}


def entry(**change) -> Entry:
    properties = {
        "name": "tiny",
        "hub": "someone/tiny",
        "revision": "0" * 40,
        "licence": "MIT",
        "citation": "nowhere",
        "rows": {"train": 6, "test": 3},
        "classes": ("a", "b", "c"),
        "column": "img",
        "label": "label",
        "shape": (3, 4, 5),
        "stand_in": None,
    }
    return Entry(**(properties | change))


TEXT = {"column": "text", "shape": (4,), "rows": {"train": 3, "test": 1}, "classes": ("a", "b")}


def encoded(pixels: np.ndarray, kind: str = "PNG") -> dict:
    with io.BytesIO() as buffer:
        Image.fromarray(pixels).save(buffer, kind, **({"lossless": True} if kind == "WEBP" else {}))
        return {"bytes": buffer.getvalue(), "path": None}


def write(path: Path, columns: dict, header: dict | None = None) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    metadata = {"huggingface": json.dumps(header)} if header else None
    pq.write_table(pa.table(columns).replace_schema_metadata(metadata), path)


def write_images(folder: Path, split: str, order=slice(None), kind: str = "PNG") -> None:
    cells = [encoded(pixels, kind) for pixels in PIXELS[split][order]]
    labels = np.array(LABELS[split])[order]
    write(folder / f"{split}-00000-of-00001.parquet", {"img": cells, "label": labels}, HEADER)


def write_owned(folder: Path, split: str, owners: list[str], numbers: list[int]) -> None:
    """Rows of one colour: row by row its owner, and a number that is its colour."""
    columns = {
        "img": [encoded(np.full((4, 5, 3), number, np.uint8)) for number in numbers],
        "label": [number % 3 for number in numbers],
        "writer": owners,
        "hsf_id": [0] * len(owners),
    }
    write(folder / f"{split}-00000-of-00001.parquet", columns, HEADER)


def write_mirror(mirror: Path) -> Path:
    for split in PIXELS:
        write_images(folder(mirror), split)
    return mirror


def folder(mirror: Path) -> Path:
    return mirror / "someone" / "tiny"
