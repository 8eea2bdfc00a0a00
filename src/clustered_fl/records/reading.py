"""What a run leaves behind, and how to read it.

    record.json         configuration, digests of code and data, versions, grouping, parameter tree
    cost.json           seconds, CPU seconds, memory, threads: what differs between two equal runs
    rounds.parquet      one measurement per row: round, scope, member, metric, value
    models.safetensors  cached models, edge updates and similarities of the parameter tree

Everything but cost.json is the same, byte for byte, for two runs of one configuration on one
machine.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import parquet
from safetensors.numpy import load_file

from clustered_fl.errors import InputError
from clustered_fl.files import read_json, replacing

if TYPE_CHECKING:
    import pandas as pd

RECORD, COST, ROUNDS, MODELS = "record.json", "cost.json", "rounds.parquet", "models.safetensors"

_INT, _TEXT, _NUMBER = pa.int32(), pa.string(), pa.float64()
_KINDS = {"round": _INT, "scope": _TEXT, "member": _INT, "metric": _TEXT, "value": _NUMBER}
_SCHEMA = pa.schema(_KINDS)


class Origin(NamedTuple):
    """What makes a record this result and no other.

    Attributes:
        code: fingerprint of the code that computes it.
        identity: digest of its configuration, its code and everything that it rests on.
    """

    code: str
    identity: str


def write_rounds(path: Path, rows: list[tuple[int, str, int, str, float]]) -> None:
    """Write measurements as parquet, whole or not at all."""
    columns = zip(*rows, strict=True) if rows else [[] for _ in _SCHEMA]
    arrays = [pa.array(column, kind) for column, kind in zip(columns, _SCHEMA.types, strict=True)]
    with replacing(path) as beside:
        parquet.write_table(pa.Table.from_arrays(arrays, schema=_SCHEMA), beside)


def load_record(folder: Path) -> dict[str, Any]:
    """The record of the run in `folder`, with its cost under "cost".

    Raises: InputError if the run left no record there.
    """
    return read_json(folder / RECORD) | {"cost": read_json(folder / COST)}


def load_rounds(folder: Path) -> "pd.DataFrame":
    """All measurements of the run in `folder`: round, scope, member, metric, value."""
    path = folder / ROUNDS
    if not path.exists():
        raise InputError(f"cannot read {path}: no such file; run the training again")
    return parquet.read_table(path).to_pandas()


def load_models(folder: Path) -> dict[str, np.ndarray]:
    """Cached models, updates and similarities of the parameter tree, by name."""
    return load_file(folder / MODELS)


def load_tables(folder: Path) -> "dict[str, pd.DataFrame]":
    """All tables of the study in `folder`, by name.

    Raises: InputError if the study left no record there.
    """
    import pandas as pd

    names = read_json(folder / "record.json")["tables"]
    return {name: pd.read_parquet(folder / f"{name}.parquet") for name in names}
