"""Names of runs in FLT's tables of accuracies."""

from collections.abc import Iterable, Mapping
from typing import Any

About = Mapping[str, Mapping[str, Any]]
"""What the ledger says of each column or row of a table."""


def of_runs(
    cells: Iterable[Mapping[str, Any]], columns: About, rows: About, titles: Mapping[str, str]
) -> dict[str, tuple[str, str]]:
    """Run -> its data, as the column names them, and the title of its method.

    Args:
        titles: `column.row` -> title, where it differs from the row's.
    """
    found = {}
    for cell in cells:
        column, row = cell["column"], cell["row"]
        title = titles.get(f"{column}.{row}", rows[row]["title"])
        found[cell["run"]] = columns[column]["values"]["data"], title
    return found
