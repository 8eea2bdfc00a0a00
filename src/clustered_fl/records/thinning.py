"""Records with fewer numbers, for archives.

Losses and norms of every client or group in every round fill nine tenths of an archive, while the
figures, tables and claims of most papers read accuracies and groups alone. Rows of other metrics
stay, because trainings are counted by them; their values become NaN, except in the last round.
Cosines of pairs of clients fill a third of an archive of groupings, and few figures and claims read
them.
"""

import json
from collections.abc import Collection, Mapping
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from clustered_fl.records import seal
from clustered_fl.records.measurements import SCHEMA
from clustered_fl.records.reading import COST, RECORD, ROUNDS
from clustered_fl.records.relatedness import COMPARISONS


def thinned(files: Mapping[str, bytes], kept: Collection[str]) -> Mapping[str, bytes]:
    """The files of a record, sealed anew, without values of metrics other than `kept`.

    Records without measurements or digests, and thinned ones, come back as they are.
    """
    record, cost = (json.loads(files[name]) for name in (RECORD, COST))
    if ROUNDS not in files or "digest" not in record:
        return files
    rounds = parquet.read_table(BytesIO(files[ROUNDS])).to_pandas()
    before = rounds["round"] < rounds.groupby("metric")["round"].transform("max")
    dropped = before & ~rounds["metric"].isin(kept) & rounds["value"].notna()
    if not dropped.any():
        return files
    less = {**files, ROUNDS: _packed(rounds.assign(value=rounds["value"].mask(dropped)))}
    return _sealed(record, cost, {name: less[name] for name in less.keys() - {RECORD, COST}})


def without_cosines(files: Mapping[str, bytes]) -> Mapping[str, bytes]:
    """The files of a grouping, sealed anew, without cosines of pairs of clients.

    Records that have none, or no digests, come back as they are.
    """
    record, cost = (json.loads(files[name]) for name in (RECORD, COST))
    if COMPARISONS not in files or "digest" not in record:
        return files
    table = parquet.read_table(BytesIO(files[COMPARISONS]))
    if "measure" not in table.column_names or "cosine" not in table["measure"].to_pylist():
        return files
    with BytesIO() as buffer:
        parquet.write_table(table.filter(pc.field("measure") != "cosine"), buffer)
        less = {**files, COMPARISONS: buffer.getvalue()}
    return _sealed(record, cost, {name: less[name] for name in less.keys() - {RECORD, COST}})


def _packed(rounds: pd.DataFrame) -> bytes:
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
