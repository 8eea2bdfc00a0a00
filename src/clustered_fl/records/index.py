"""The index of records: one table of names and folders for claims, metrics and notebooks.

Columns: kind ("run", "grouping", "encoder" or "study"), entry (name in the ledger), name (of the
record; an entry with a sweep has several), seed and folder.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from clustered_fl.errors import InputError
from clustered_fl.files import replacing
from clustered_fl.records.reading import load_record

Kind = Literal["run", "grouping", "encoder", "study"]
COLUMNS = ("kind", "entry", "name", "seed", "folder")


def build(rows: Iterable[tuple[Kind, str, str, int, str]], prefix: str = "") -> pd.DataFrame:
    """The index with these rows; `prefix` is put before the folders."""
    records = pd.DataFrame(list(rows), columns=list(COLUMNS))
    return records.assign(folder=prefix + records["folder"].astype(str))


def write(records: pd.DataFrame, path: Path) -> None:
    """Write the index as CSV, atomically."""
    with replacing(path) as beside:
        records.to_csv(beside, index=False)


def read(path: str | Path) -> pd.DataFrame:
    """Read what `write` wrote; InputError if there is no such file.

    All but seeds are texts, because a run may be called NA or 10.
    """
    texts = dict.fromkeys(set(COLUMNS) - {"seed"}, str)
    try:
        return pd.read_csv(path, dtype=texts, keep_default_na=False)
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read the index of records {path}: {error}") from error


def chosen(records: pd.DataFrame, kind: Kind, *entries: str) -> pd.DataFrame:
    """The records of one kind, of these entries in this order; by default of all entries."""
    own = records[records["kind"] == kind]
    if not entries:
        return own
    return pd.concat([own[own["entry"] == entry] for entry in entries])


def folder(records: pd.DataFrame, kind: Kind, name: str, seed: int | None = None) -> Path:
    """Folder of one record, by default of the first seed; InputError if it is not in the index."""
    own = records[(records["kind"] == kind) & (records["name"] == name)]
    own = own if seed is None else own[own["seed"] == seed]
    if own.empty:
        of = "" if seed is None else f", seed {seed}"
        raise InputError(f"there is no record of {kind} {name}{of}; it was not computed")
    return Path(own["folder"].iloc[0])


def each(records: pd.DataFrame) -> Iterator[tuple[str, int, Path]]:
    """Name, seed and folder of every record, in order."""
    for name, seed, path in zip(records["name"], records["seed"], records["folder"], strict=True):
        yield name, int(seed), Path(path)


def loaded(records: pd.DataFrame) -> list[dict[str, Any]]:
    """The content of all records, in order."""
    return [load_record(path) for _, _, path in each(records)]
