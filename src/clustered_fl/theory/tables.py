"""Putting the tables of a study's parts together."""

import pandas as pd


def stacked(parts: dict[str, dict[str, pd.DataFrame]], key: str) -> dict[str, pd.DataFrame]:
    """Stack equally named tables of several parts; the first column, `key`, says which part.

    Args:
        parts: by part, its tables by name; all parts have the same tables.
    """
    tables = next(iter(parts.values()))
    return {table: _stack({part: parts[part][table] for part in parts}, key) for table in tables}


def _stack(parts: dict[str, pd.DataFrame], key: str) -> pd.DataFrame:
    return pd.concat(parts, names=[key]).reset_index(key).reset_index(drop=True)
