"""Putting the tables of a study's parts together."""

import pandas as pd


def stacked(parts: dict[str, dict[str, pd.DataFrame]], key: str) -> dict[str, pd.DataFrame]:
    """Stack equally named tables of several parts; the first column, `key`, says which part."""
    names = next(iter(parts.values()))
    tables = {name: {part: parts[part][name] for part in parts} for name in names}
    return {
        name: pd.concat(table, names=[key]).reset_index(key).reset_index(drop=True)
        for name, table in tables.items()
    }
