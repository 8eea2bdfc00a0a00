"""Records with fewer numbers, for archives.

Losses and norms of every client or group in every round fill nine tenths of an archive, while the
figures, tables and claims of most papers read accuracies and groups alone. Rows of other metrics
stay, because trainings are counted by them; their values become NaN, except in the last round.
Cosines of pairs of clients fill a third of an archive of groupings, and few figures and claims read
them. Tables of numbers that do not repeat compress better byte by byte. No number that stays is
rounded, so that a figure is the same from a record and from its archive.
"""

import json
from collections.abc import Callable, Collection, Mapping
from functools import partial
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from clustered_fl.records import seal
from clustered_fl.records.measurements import SCHEMA
from clustered_fl.records.reading import COST, RECORD, ROUNDS
from clustered_fl.records.relatedness import COMPARISONS

if TYPE_CHECKING:
    import pandas as pd


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


def compact(files: Mapping[str, bytes], left: Collection[str] = ()) -> Mapping[str, bytes]:
    """The files of a record, sealed anew, with tables that an archive compresses better.

    Args:
        left: tables that stay as they are.
    """
    for name in sorted(name for name in files if name.endswith(".parquet") and name not in left):
        files = _replaced(files, name, _by_bytes)
    return files


def _by_bytes(content: bytes) -> bytes | None:
    """A table with its floats stored byte by byte (BYTE_STREAM_SPLIT); None if it has none."""
    table = parquet.read_table(BytesIO(content))
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
