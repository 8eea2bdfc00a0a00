"""Tables as CSV for machines, Markdown for readers and LaTeX for papers."""

import html
import re
from collections.abc import Iterable
from numbers import Real
from pathlib import Path
from typing import Any

import pandas as pd
from pandas.io.formats.style import Styler

from clustered_fl.figures.typesetting import DASH, number, number_columns, typeset
from clustered_fl.files import digest, replacing

# Letters and signs that LaTeX sets in mathematics.
_LATEX = {"ₘₐₓ": r"$_{\max}$", "₀": "$_0$", "₁": "$_1$", "₂": "$_2$"}
_LATEX |= {"ᵢ": "$_i$", "ⱼ": "$_j$", "ₖ": "$_k$"}
_LATEX |= {"α": r"$\alpha$", "γ": r"$\gamma$", "ε": r"$\varepsilon$", "φ": r"$\varphi$"}
_LATEX |= {"θ": r"$\theta$", "Θ": r"$\Theta$", "∈": r"$\in$", "≤": r"$\le$", "−": "$-$"}
_LATEX |= {">": "$>$", "<": "$<$", "–": "--", "·": r"$\cdot$"}
# Columns with longer cells are set as paragraphs; a line holds about so many characters. Where the
# other columns fill it, a paragraph still has this share of it on average.
_LONG, _LINE, _LEAST = 25, 85, 0.15


def save(table: pd.DataFrame, out: Path, name: str, note: str) -> None:
    """Write `<name>.csv`, `<name>.md` and `<name>.tex`; `note` is the provenance line below.

    The CSV holds the table alone, so that it can be read back.
    """
    contents = {
        "csv": table.to_csv(index=False, float_format="%.6g"),
        "md": f"{_markdown(table)}\n\n{markdown(note)}\n",
        "tex": f"{_latex(_signed(table))}% {note}\n",
    }
    for suffix, content in contents.items():
        with replacing(Path(out) / f"{name}.{suffix}") as beside:
            beside.write_text(content, encoding="utf-8")


def _markdown(table: pd.DataFrame) -> str:
    """Numbers are written here: tabulate would read +19.71 as 19.71 and 71.40 as 71.4."""
    written = _signed(table).map(lambda cell: cell if isinstance(cell, str) else _number(cell))
    sides = ["right" if each else "left" for each in number_columns(written.to_numpy().tolist())]
    escaped = written.map(markdown).rename(columns=markdown)
    return escaped.to_markdown(index=False, disable_numparse=True, colalign=sides)


def _number(cell: Any) -> str:
    return number(cell) if isinstance(cell, Real) and not isinstance(cell, bool) else str(cell)


def _signed(table: pd.DataFrame) -> pd.DataFrame:
    """The table with texts as readers see them, such as −14.69."""
    return table.map(lambda cell: typeset(cell) if isinstance(cell, str) else cell)


def _latex(table: pd.DataFrame) -> str:
    options = {"index": False, "escape": True, "float_format": "%.4g"}
    text = table.to_latex(column_format=_column_format(table), **options)
    for sign, command in _LATEX.items():
        text = text.replace(sign, command)
    return text


def _column_format(table: pd.DataFrame) -> str:
    """One letter per column; columns of long texts share the rest of the line as paragraphs."""
    widths = {name: max(table[name].astype(str).str.len().max(), len(name)) for name in table}
    long = {name: min(width, _LINE) for name, width in widths.items() if width > _LONG}
    short = sum(width for name, width in widths.items() if name not in long) / _LINE
    rest = max(0.95 - short, _LEAST * len(long))
    share = {name: rest * width / sum(long.values()) for name, width in long.items()}
    return "".join(rf"p{{{share[name]:.2f}\linewidth}}" if name in long else "l" for name in table)


def cells(values: Iterable[float], form: str = ".2f") -> list[str]:
    """Numbers as the cells of a column, in ASCII for the CSV; a dash where there is none."""
    return [DASH if pd.isna(value) else format(value, form) for value in values]


def markdown(text: str) -> str:
    """Text as a cell of a Markdown table, escaped.

    A bar or a line break would end its cell; `a<b` would be read as a tag, `&lt;` as a sign.
    """
    return re.sub(r"(\||<(?=[\w/!?])|&(?=#?\w+;))", r"\\\1", " ".join(text.split()))


def shown(table: pd.DataFrame, caption: str = "") -> Styler:
    """The table as a page shows it: whole texts, left-aligned, no row numbers, unique or not."""
    table = _signed(table).reset_index(drop=True)
    # pandas would draw a name for it, and equal pages would differ.
    name = digest([table.to_csv(), caption])
    left = [("text-align", "left"), ("vertical-align", "top")]
    style = Styler(table, uuid=name, cell_ids=False).hide(axis="index")
    style = style.format(precision=3, escape="html").format_index(escape="html", axis="columns")
    return style.set_table_styles([{"selector": "th, td", "props": left}]).set_caption(
        html.escape(caption)
    )
