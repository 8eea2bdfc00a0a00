"""Tables as CSV for machines, Markdown for readers and LaTeX for papers."""

import html
import re
from collections.abc import Iterable
from pathlib import Path

import pandas as pd
from pandas.io.formats.style import Styler

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
    escaped = table.map(lambda cell: markdown(cell) if isinstance(cell, str) else cell)
    escaped = escaped.rename(columns=markdown)
    contents = {
        "csv": table.to_csv(index=False, float_format="%.6g"),
        "md": f"{escaped.to_markdown(index=False)}\n\n{markdown(note)}\n",
        "tex": f"{_latex(table)}% {note}\n",
    }
    for suffix, content in contents.items():
        with replacing(Path(out) / f"{name}.{suffix}") as beside:
            beside.write_text(content, encoding="utf-8")


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
    """Numbers as the cells of a column, a dash where there is none."""
    return ["–" if pd.isna(value) else format(value, form) for value in values]


def markdown(text: str) -> str:
    """Text as a cell of a Markdown table, escaped.

    A bar or a line break would end its cell; `a<b` would be read as a tag, `&lt;` as a sign.
    """
    return re.sub(r"(\||<(?=[\w/!?])|&(?=#?\w+;))", r"\\\1", " ".join(text.split()))


def shown(table: pd.DataFrame, caption: str = "") -> Styler:
    """The table as a page shows it: whole texts, left-aligned, no row numbers, unique or not."""
    table = table.reset_index(drop=True)
    # pandas would draw a name for it, and equal pages would differ.
    name = digest([table.to_csv(), caption])
    left = [("text-align", "left"), ("vertical-align", "top")]
    style = Styler(table, uuid=name, cell_ids=False).hide(axis="index")
    style = style.format(precision=3, escape="html").format_index(escape="html", axis="columns")
    return style.set_table_styles([{"selector": "th, td", "props": left}]).set_caption(
        html.escape(caption)
    )
