"""The tables of a study: which they are, and putting those of its parts together."""

from collections.abc import Callable
from typing import TypeVar

import pandas as pd

Study = TypeVar("Study", bound=Callable[..., dict[str, pd.DataFrame]])


def leaves(*tables: str) -> Callable[[Study], Study]:
    """Make a function a study, which returns exactly these tables, whatever its settings are.

    The workflow reads them from its attribute `tables`, and makes it again when one is missing.
    """

    def declared(study: Study) -> Study:
        study.tables = tables
        return study

    return declared


def stacked(parts: dict[str, dict[str, pd.DataFrame]], key: str) -> dict[str, pd.DataFrame]:
    """Stack equally named tables of several parts; the first column, `key`, says which part."""
    names = next(iter(parts.values()))
    tables = {name: {part: parts[part][name] for part in parts} for name in names}
    return {
        name: pd.concat(table, names=[key]).reset_index(key).reset_index(drop=True)
        for name, table in tables.items()
    }
