"""Records with fewer numbers, for archives.

Losses and norms of every client or group in every round fill nine tenths of an archive, while the
figures, tables and claims of most papers read accuracies and groups alone. Rows of other metrics
stay, because trainings are counted by them; their values become NaN, except in the last round.
Cosines of pairs of clients fill a third of an archive of groupings, and few figures and claims read
them; those that are kept have single precision. Signatures with more dimensions than there are
clients are rotated into fewer. Tables of numbers that do not repeat compress better byte by byte.
"""

import json
from collections.abc import Callable, Collection, Mapping
from functools import partial
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet
from safetensors import numpy as safetensors

from clustered_fl.records import seal
from clustered_fl.records.measurements import SCHEMA
from clustered_fl.records.reading import COST, RECORD, ROUNDS
from clustered_fl.records.relatedness import COMPARISONS, SIGNATURES

if TYPE_CHECKING:
    import pandas as pd

PAIRWISE = ["cosine", "similarity"]
"""Measures of pairs of clients, of which a grouping has thousands."""


def thinned(files: Mapping[str, bytes], kept: Collection[str]) -> Mapping[str, bytes]:
    """The files of a record, sealed anew, without values of metrics other than `kept`.

    Records without measurements or digests, and thinned ones, come back as they are.
    """
    return _replaced(files, ROUNDS, partial(_of_metrics, kept))


def without_cosines(files: Mapping[str, bytes]) -> Mapping[str, bytes]:
    """The files of a grouping, sealed anew, without cosines of pairs of clients.

    Records that have none, or no digests, come back as they are.
    """
    return _replaced(files, COMPARISONS, _of_other_measures)


def in_fewer_dimensions(files: Mapping[str, bytes]) -> Mapping[str, bytes]:
    """The files of a grouping, sealed anew, with n signatures in at most n dimensions.

    A rotation maps them there. It preserves inner products and distances up to rounding, and
    whatever a figure or claim computes from signatures of one vector depends on these alone.
    Records without signatures, or with few dimensions, come back as they are.
    """
    return _replaced(files, SIGNATURES, _rotated)


def _rotated(content: bytes) -> bytes | None:
    """Signatures X as L of the decomposition X = L Q, whose positive diagonal makes it unique."""
    arrays = safetensors.load(content)
    sent = arrays["signatures"]
    if not sent.size:
        return None
    vectors = sent.reshape(-1, sent.shape[-1]).astype(np.float64)
    if len(vectors) >= vectors.shape[1]:
        return None
    lower = np.linalg.qr(vectors.T, mode="r").T
    lower *= np.where(np.diag(lower) < 0, -1, 1)
    # safetensors writes the memory of an array as it lies there.
    lower = np.ascontiguousarray(lower, dtype=np.float32)
    arrays["signatures"] = lower.reshape(*sent.shape[:-1], len(lower))
    return safetensors.save(arrays)


def compact(files: Mapping[str, bytes], left: Collection[str] = ()) -> Mapping[str, bytes]:
    """The files of a record, sealed anew, with tables that an archive compresses better.

    Their numbers are the same, but for cosines of pairs of clients, which get single precision.

    Args:
        left: tables that stay as they are.
    """
    for name in sorted(name for name in files if name.endswith(".parquet") and name not in left):
        files = _replaced(files, name, _by_bytes)
    return files


def _by_bytes(content: bytes) -> bytes | None:
    """A table with its floats stored byte by byte (BYTE_STREAM_SPLIT); None if it has none."""
    table = _of_single_precision(parquet.read_table(BytesIO(content)))
    floats = [field.name for field in table.schema if pa.types.is_floating(field.type)]
    if not floats:
        return None
    with BytesIO() as buffer:
        parquet.write_table(
            table,
            buffer,
            compression="none",
            use_dictionary=[name for name in table.column_names if name not in floats] or False,
            column_encoding=dict.fromkeys(floats, "BYTE_STREAM_SPLIT"),
        )
        written = buffer.getvalue()
    return None if written == content else written


def _of_single_precision(table: pa.Table) -> pa.Table:
    if not {"measure", "value"} <= {*table.column_names}:
        return table
    own, value = pc.is_in(table["measure"], pa.array(PAIRWISE)), table["value"]
    rounded = pc.cast(pc.cast(value, pa.float32(), safe=False), value.type)
    place = table.column_names.index("value")
    return table.set_column(place, "value", pc.if_else(own, rounded, value))


def _replaced(
    files: Mapping[str, bytes], name: str, less: Callable[[bytes], bytes | None]
) -> Mapping[str, bytes]:
    """The files with a smaller one of this name, sealed; as they are if `less` gives none."""
    record, cost = (json.loads(files[each]) for each in (RECORD, COST))
    content = less(files[name]) if name in files and "digest" in record else None
    if content is None:
        return files
    others = {each: files[each] for each in files.keys() - {RECORD, COST}}
    return _sealed(record, cost, others | {name: content})


def _of_metrics(kept: Collection[str], content: bytes) -> bytes | None:
    rounds = parquet.read_table(BytesIO(content)).to_pandas()
    before = rounds["round"] < rounds.groupby("metric")["round"].transform("max")
    dropped = before & ~rounds["metric"].isin(kept) & rounds["value"].notna()
    if not dropped.any():
        return None
    return _packed(rounds.assign(value=rounds["value"].mask(dropped)))


def _of_other_measures(content: bytes) -> bytes | None:
    table = parquet.read_table(BytesIO(content))
    if "measure" not in table.column_names:
        return None
    less = table.filter(pc.field("measure") != "cosine")
    if len(less) == len(table):
        return None
    with BytesIO() as buffer:
        parquet.write_table(less, buffer)
        return buffer.getvalue()


def _packed(rounds: "pd.DataFrame") -> bytes:
    """Measurements as parquet, plain: an archive compresses them better, all together."""
    with BytesIO() as buffer:
        table = pa.Table.from_pandas(rounds, schema=SCHEMA, preserve_index=False)
        parquet.write_table(table, buffer, compression="none", use_dictionary=["scope", "metric"])
        return buffer.getvalue()


def _sealed(
    record: dict[str, Any], cost: dict[str, Any], others: Mapping[str, bytes]
) -> dict[str, bytes]:
    for content in (record, cost):
        del content["digest"]
    with TemporaryDirectory() as name:
        folder = Path(name)
        for other, content in others.items():
            (folder / other).write_bytes(content)
        seal.write(folder, record, cost, others)
        return {path.name: path.read_bytes() for path in folder.iterdir()}
