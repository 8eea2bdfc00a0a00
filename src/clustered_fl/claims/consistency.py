"""Tests of the results inside the workflow: complete tables, and verdicts that fit their data."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from clustered_fl.claims.verdicts import COLUMNS, VERDICTS
from clustered_fl.errors import InputError
from clustered_fl.files import require_sum

JUDGED = ("CONFIRMED", "REFUTED", "DEPENDS", "INCONCLUSIVE", "BY CONSTRUCTION")


def check_results(verdicts: Path, claims: Sequence[str], artefacts: Mapping[str, Path]) -> None:
    """Test the table of verdicts, and that tables of artefacts have rows and no empty columns.

    Args:
        claims: ids, each of which must have one row.
        artefacts: name -> CSV of its numbers.
    Raises: InputError naming the first problem.
    """
    require_sum(verdicts)
    table = _read(verdicts)
    for problem in _shape(table, claims) or _honesty(table):
        raise InputError(f"{verdicts}: {problem}")
    for path in artefacts.values():
        numbers = _read(path)
        if numbers.empty:
            raise InputError(f"{path}: there are no rows")
        for name in numbers:
            if (numbers[name].astype(str) == "").all():
                raise InputError(f"{path}: the column {name!r} is empty")


def _read(path: Path) -> pd.DataFrame:
    """A table in which empty fields are empty texts."""
    try:
        return pd.read_csv(path, keep_default_na=False)
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {path}: {error}") from error


def _shape(table: pd.DataFrame, claims: Sequence[str]) -> list[str]:
    if list(table.columns) != list(COLUMNS):
        return [f"columns are {list(table.columns)}, expected {list(COLUMNS)}"]
    rows = table["claim"].value_counts()
    wrong = [f"claim {name} must have one row" for name in claims if rows.get(name, 0) != 1]
    wrong += [f"claim {name} is not in the ledger" for name in rows.index if name not in claims]
    return wrong + [f"unknown verdict {v!r}" for v in table["verdict"] if v not in VERDICTS]


def _honesty(table: pd.DataFrame) -> list[str]:
    """Verdicts on built-in data, verdicts without measurements, measurements without verdict."""
    judged = table["verdict"].isin(JUDGED)
    not_run = table["verdict"] == "NOT RUN"
    settings_missing = table["measured"].str.contains("(NOT RUN)", regex=False)
    wrong = {
        "is judged on stand-in data": judged & (table["source"] == "builtin"),
        "is judged without a measurement": judged & (table["measured"] == ""),
        "was measured but is called not run": not_run & (table["seeds"] > 0) & ~settings_missing,
    }
    return [f"claim {c} {why}" for why, rows in wrong.items() for c in table.loc[rows, "claim"]]
