"""Numbers as readers see them, in figures, tables and on pages; files for machines stay ASCII."""

import math
import re
from collections.abc import Sequence

MINUS, DASH = "−", "–"
_HYPHEN = re.compile(r"(?<![\w)-])-(?=\d|inf\b)")
_NUMBER = re.compile(r"[+\-−]?(\d+(,\d{3})*(\.\d+)?(e[+-]?\d+)?%?|inf)")
_ZERO = re.compile(r"[+−](?=0(\.0+)?%?$)")


def typeset(text: str) -> str:
    """Text with the signs of its numbers: −1.5 for -1.5, and hyphens of words as they are.

    What is a number and nothing else has commas too, as 867,633, and no sign if it is zero.
    """
    signed = _HYPHEN.sub(MINUS, text)
    if not _NUMBER.fullmatch(text):
        return signed
    whole, point, rest = signed.partition(".")
    grouped = re.sub(r"(?<=\d)(?=(\d{3})+(?!\d))", ",", whole)
    return _ZERO.sub("", grouped + point + rest)


def number(value: float) -> str:
    """A number as the cell of a table: six digits, a whole one without a point, a dash for none."""
    if isinstance(value, float) and math.isnan(value):
        return DASH
    return typeset(f"{value:.6g}" if value % 1 else f"{value:.0f}")


def number_columns(rows: Sequence[Sequence[str]]) -> list[bool]:
    """Which columns of a table, its heading first, are set flush right: those of numbers only."""
    body = rows[1:] or rows
    return [all(map(_is_number, column)) for column in zip(*body, strict=True)]


def _is_number(text: str) -> bool:
    """Whether a table's cell is a number, or the dash for one."""
    return text == DASH or bool(_NUMBER.fullmatch(text))
