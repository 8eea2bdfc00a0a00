"""Rows of numbers as Markdown."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from clustered_fl.files import replacing

Row = dict[str, Any]
Columns = dict[str, tuple[str, str]]
"""Name in a row -> heading, and how a number is written, such as "{:.2f}"."""


def markdown(rows: list[Row], columns: Columns) -> list[str]:
    """Lines of a table; what a row lacks is a dash."""
    headings = [heading for heading, _ in columns.values()]
    lines = [headings, ["---"] * len(columns)]
    lines += [[_text(row, name, form) for name, (_, form) in columns.items()] for row in rows]
    return ["| " + " | ".join(line) + " |" for line in lines]


def _text(row: Row, name: str, form: str) -> str:
    value = row.get(name)
    if isinstance(value, bool):
        return "yes" if value else "**no**"
    return "-" if value is None else form.format(value).replace("|", "\\|")


def measured_on(rows: Iterable[Row]) -> str:
    """A sentence: the machines, and the revisions of the code with their dates."""
    known = list(rows)
    machines = sorted({row["machine"] for row in known})
    codes = sorted({f"{row['commit']} ({row['date']})" for row in known})
    return f"Machine: {'; '.join(machines)}. Code: {', '.join(codes)}."


def write_lines(lines: list[str], path: Path) -> None:
    """Write a text, whole or not at all."""
    with replacing(path) as beside:
        beside.write_text("\n".join(lines) + "\n")
