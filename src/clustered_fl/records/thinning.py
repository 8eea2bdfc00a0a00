"""Records with fewer numbers, for archives.

Losses and norms of every client or group in every round fill nine tenths of an archive, while the
figures, tables and claims of most papers read accuracies and groups alone. Rows of other metrics
stay, because trainings are counted by them; their values become NaN, except in the last round.
Cosines of pairs of clients fill a third of an archive of groupings, and few figures and claims read
them. Tables of numbers that do not repeat compress better byte by byte. No number that stays is
rounded, so that a figure is the same from a record and from its archive.
"""

import json
from collections.abc import Collection, Mapping
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


def thinned(
    files: Mapping[str, bytes], metrics: Collection[str] = (), cosines: bool = True
) -> Mapping[str, bytes]:
    """The files of a record with smaller tables, sealed anew if one of them changes.

    Records without digests, and thinned ones, come back as they are.

    Args:
        metrics: those whose values are kept for all rounds; all if there are none.
        cosines: whether cosines of pairs of clients are kept.
    """
    record = json.loads(files[RECORD])
    if "digest" not in record:
        return files
    tables = {name: content for name, content in files.items() if name.endswith(".parquet")}
    less = {name: _less(name, content, metrics, cosines) for name, content in tables.items()}
    if less == tables:
        return files
    others = {name: content for name, content in files.items() if name not in (RECORD, COST)}
    return _sealed(record, json.loads(files[COST]), others | less)


def _less(name: str, content: bytes, metrics: Collection[str], cosines: bool) -> bytes:
    """A table with fewer numbers, stored as an archive compresses it best."""
    if name == ROUNDS and metrics:
        # What is left of these repeats, and compresses better as it is.
        return _of_metrics(metrics, content) or content
    if name == COMPARISONS and not cosines:
        content = _of_other_measures(content) or content
    return _by_bytes(content) or content


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
    """Measurements as uncompressed parquet; an archive compresses all of them together."""
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
