"""One split of a dataset folder, as Hugging Face lays it out, decoded to plain arrays.

Read with pyarrow and Pillow rather than with the `datasets` library: the same files, but no cache
in the user's home, no lock files, no import of 2.5 s, and no way to reach a network.
"""

import hashlib
import io
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from clustered_fl.data.dataset import Split
from clustered_fl.data.registry import Entry
from clustered_fl.errors import InputError


def shards(folder: Path, split: str) -> list[Path]:
    """Files of one split in order, in `folder` itself or, as on the hub, one folder below.

    Raises:
        InputError: if none is there or some are missing.
    """
    found = _files(folder, split)
    if not found:
        raise InputError(f"{folder} has no {split} split: expected {split}-00000-of-00001.parquet")
    expected = int(found[0].stem.rsplit("-", 1)[1])
    if len(found) != expected:
        raise InputError(
            f"{folder} has {len(found)} files of its {split} split, expected {expected} "
            f"({found[0].name} ...): complete the copy"
        )
    return found


def has_split(folder: Path, split: str) -> bool:
    """Whether any file of a split is there, be it one of several."""
    return bool(_files(folder, split))


def _files(folder: Path, split: str) -> list[Path]:
    pattern = f"{split}-*-of-*.parquet"
    return sorted(folder.glob(pattern)) or sorted(folder.glob(f"*/{pattern}"))


def read_split(folder: Path, split: str, entry: Entry) -> Split:
    """Read and decode one split ("train" or "test").

    Raises:
        InputError: if a file is missing, truncated, or holds other columns, shapes, labels or
            owners than the entry says.
    """
    files = shards(folder, split)
    table = pa.concat_tables([_table(file, entry) for file in files])
    values, labels = table[entry.column], table[entry.label]
    if any(column.null_count for column in table.columns):
        raise InputError(f"{files[0]} has empty cells: {_again(entry)}")
    rows = values.to_pylist() if entry.is_text else _images(values, entry, files[0])
    classes = _class_names(files[0], entry)
    numbers = _labels(labels, len(classes), entry, files[0])
    return Split(rows, numbers, classes, _owners(table, entry, files[0]))


def content_digest(split: Split) -> str:
    """SHA-256 (hex) over all pairs (row, label) of a split, whatever their order.

    Mirrors keep the same images in different orders and encodings; this recognises them all.
    """
    pairs = zip(split.rows, split.labels, strict=True)
    digests = (hashlib.sha256(_bytes(row) + label.tobytes()).digest() for row, label in pairs)
    return hashlib.sha256(b"".join(sorted(digests))).hexdigest()


def _bytes(row: np.ndarray | str) -> bytes:
    return row.encode() if isinstance(row, str) else row.tobytes()


def _again(entry: Entry) -> str:
    return f"delete it and fetch {entry.hub} again"


def _table(file: Path, entry: Entry) -> pa.Table:
    try:
        table = pq.read_table(file, partitioning=None)
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"cannot read {file} ({reason}): {_again(entry)}") from error
    if not set(entry.columns) <= set(table.column_names):
        raise InputError(
            f"{file} has the columns {', '.join(table.column_names)}, expected "
            f"{' and '.join(entry.columns)}"
        )
    return table.select(entry.columns)


def _images(cells: pa.ChunkedArray, entry: Entry, file: Path) -> np.ndarray:
    """Decode PNG or WebP cells to uint8 [N, C, H, W]."""
    channels, height, width = entry.shape
    mode = "L" if channels == 1 else "RGB"
    images = np.empty((len(cells), height, width, channels), np.uint8)
    for number, cell in enumerate(_encoded(cells, file, entry)):
        images[number] = _image(cell, mode, (width, height), f"row {number} of {file}", entry)
    return np.ascontiguousarray(images.transpose(0, 3, 1, 2))


def _encoded(cells: pa.ChunkedArray, file: Path, entry: Entry) -> Sequence[bytes]:
    try:
        return [cell["bytes"] for cell in cells.to_pylist()]
    except (TypeError, KeyError) as error:
        raise InputError(f"{file}: column {entry.column} does not hold images") from error


def _image(cell: bytes, mode: str, size: tuple[int, int], where: str, entry: Entry) -> np.ndarray:
    """Decode one image to [H, W, C]."""
    try:
        image = Image.open(io.BytesIO(cell)).convert(mode)
    except (OSError, TypeError) as error:
        raise InputError(f"{where} is not an image ({error}): {_again(entry)}") from error
    if image.size != size:
        raise InputError(f"{where} is {image.size} pixels wide and high, expected {size}")
    return np.asarray(image).reshape(size[1], size[0], -1)


def _labels(column: pa.ChunkedArray, classes: int, entry: Entry, file: Path) -> np.ndarray:
    if not pa.types.is_integer(column.type):
        raise InputError(f"{file}: column {entry.label} must hold integers, not {column.type}")
    labels = column.to_numpy().astype(np.int64)
    if labels.size and not 0 <= labels.min() <= labels.max() < classes:
        raise InputError(
            f"{file}: labels lie in {labels.min()}..{labels.max()}, expected 0..{classes - 1}: "
            f"{_again(entry)}"
        )
    return labels


def _owners(table: pa.Table, entry: Entry, file: Path) -> np.ndarray:
    """Name of every row's owner, str [N]; empty if the entry names no column of owners."""
    if entry.owner is None:
        return np.empty(0, str)
    kind = table[entry.owner].type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        raise InputError(f"{file}: column {entry.owner} must hold strings, not {kind}")
    return np.array(table[entry.owner].to_pylist(), str)


def _class_names(file: Path, entry: Entry) -> tuple[str, ...]:
    """Class names as the file's own header says; a partial copy may hold some of them only."""
    header = (pq.read_schema(file).metadata or {}).get(b"huggingface", b"{}")
    features = json.loads(header).get("info", {}).get("features", {})
    names = tuple(features.get(entry.label, {}).get("names", entry.classes))
    unknown = [name for name in names if name not in entry.classes]
    if unknown:
        raise InputError(f"{file} has a class {unknown[0]!r} that {entry.name} does not have")
    return names
