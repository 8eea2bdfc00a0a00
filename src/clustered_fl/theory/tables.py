"""Tables of studies: declaration, and combination of tables from several parts."""

from collections.abc import Callable
from typing import TypeVar

import pandas as pd

Study = TypeVar("Study", bound=Callable[..., dict[str, pd.DataFrame]])


def leaves(*tables: str) -> Callable[[Study], Study]:
    """Decorator for a study: it returns exactly these tables, whatever its settings.

    The workflow reads the attribute `tables`, and repeats the study if a table is missing.
    """

    def declared(study: Study) -> Study:
        study.tables = tables
        return study

    return declared


def stacked(parts: dict[str, dict[str, pd.DataFrame]], key: str) -> dict[str, pd.DataFrame]:
    """Stack tables with the same names; the first column, `key`, names the part."""
    names = next(iter(parts.values()))
    tables = {name: {part: parts[part][name] for part in parts} for name in names}
    return {
        name: pd.concat(table, names=[key]).reset_index(key).reset_index(drop=True)
        for name, table in tables.items()
    }
