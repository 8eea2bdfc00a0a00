"""Tables: the same numbers in every format, and text that LaTeX and readers can digest."""

import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from nbconvert.filters import markdown2html

from clustered_fl.figures import tables

NOTE = "scale demo · 1 seed"
TABLE = pd.DataFrame(
    {
        "symbol": ["ε₁ ≤ γₘₐₓ", "a_b & 50%", "αᵢⱼ"],
        "value": [0.1, 1 / 3, 1e-9],
        "text": ["short", "a sentence of more than thirty letters", 'Müller, "quoted"\nnext line'],
    }
)


@pytest.fixture
def saved(tmp_path):
    tables.save(TABLE, tmp_path, "table", NOTE)
    return tmp_path


def test_csv_reads_back(saved):
    pd.testing.assert_frame_equal(pd.read_csv(saved / "table.csv"), TABLE, rtol=1e-5)


def test_every_format_but_csv_carries_the_note(saved):
    assert {path.name for path in saved.iterdir()} == {f"table.{s}" for s in ("csv", "md", "tex")}
    assert NOTE in (saved / "table.md").read_text()
    assert NOTE in (saved / "table.tex").read_text().splitlines()[-1]
    assert NOTE not in (saved / "table.csv").read_text()


def test_markdown_has_a_row_per_row(tmp_path):
    tables.save(TABLE.iloc[:2], tmp_path, "table", NOTE)
    lines = [line for line in (tmp_path / "table.md").read_text().splitlines() if line[:1] == "|"]
    assert len(lines) == 2 + 2
    assert {line.count("|") for line in lines} == {4}


def test_markdown_keeps_every_digit_and_sign(tmp_path):
    table = pd.DataFrame({"gain": tables.cells([19.71, -4.4, 71.4], "+.2f"), "of": [636.0, 1.5, 2]})
    tables.save(table.assign(rows=[1, 867633, 2], name="-"), tmp_path, "table", NOTE)
    lines = (tmp_path / "table.md").read_text().splitlines()
    found = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:5]]
    assert found == [
        ["+19.71", "636", "1", "-"],
        ["−4.40", "1.5", "867,633", "-"],
        ["+71.40", "2", "2", "-"],
    ]
    assert [cell.endswith(":") for cell in lines[1].strip("|").split("|")] == [*[True] * 3, False]
    assert "-4.40" in (tmp_path / "table.csv").read_text()


def test_latex_sets_symbols_in_mathematics(saved):
    text = (saved / "table.tex").read_text()
    assert r"$\varepsilon$$_1$ $\le$ $\gamma$$_{\max}$" in text
    assert r"a\_b \& 50\%" in text
    assert "0.3333 " in text


def test_latex_wraps_long_columns_only(saved):
    first = (saved / "table.tex").read_text().splitlines()[0]
    assert first.startswith(r"\begin{tabular}{llp{")
    assert first.count("p{") == 1


def shares_of_a_line(table: pd.DataFrame, folder: Path) -> list[float]:
    """Widths of the columns that are set as paragraphs."""
    tables.save(table, folder, "table", NOTE)
    first = (folder / "table.tex").read_text().splitlines()[0]
    return [float(share) for share in re.findall(r"p{(-?[0-9.]+)", first)]


def test_latex_columns_fit_on_a_line(tmp_path):
    table = pd.DataFrame({"a": ["x" * 10], "b": ["x" * 40], "c": ["x" * 400], "d": ["x" * 20]})
    shares = shares_of_a_line(table, tmp_path)
    assert len(shares) == 2
    assert shares[0] < shares[1]
    assert sum(shares) + 30 / 85 == pytest.approx(0.95, abs=0.02)


@pytest.mark.parametrize("long", [1, 2])
def test_latex_columns_of_long_texts_keep_a_width_where_short_ones_fill_the_line(tmp_path, long):
    table = pd.DataFrame({f"number {n}": [n] for n in range(12)})
    texts = {f"text {n}": ["x" * (40 + 400 * n)] for n in range(long)}
    shares = shares_of_a_line(table.assign(**texts), tmp_path)
    assert len(shares) == long
    assert min(shares) > 0.05
    assert sum(shares) == pytest.approx(0.15 * long, abs=0.02)


def test_equal_tables_are_equal_bytes(saved, tmp_path_factory):
    again = tmp_path_factory.mktemp("again")
    tables.save(TABLE.copy(), again, "table", NOTE)
    for path in saved.iterdir():
        assert path.read_bytes() == (again / path.name).read_bytes()


def test_numbers_become_the_cells_of_a_column():
    assert tables.cells([1.234, None, float("nan"), pd.NA, -2]) == ["1.23", "–", "–", "–", "-2.00"]
    assert tables.cells(pd.Series([3.0, np.inf]), "+.3g") == ["+3", "+inf"]
    assert tables.cells([]) == []


class Cells(HTMLParser):
    """The texts in the cells of a table on a page, as a browser shows them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        assert tag in {"style", "table", "caption", "thead", "tbody", "tr", "th", "td", "p"}
        self.texts += [""] if tag in {"th", "td"} else []

    def handle_data(self, data):
        if self.texts:
            self.texts[-1] += data


def cells(html: str) -> list[str]:
    return [text.strip() for text in Cells(html).texts]


NASTY = pd.DataFrame({"a<b": ["a<b & <script>x</script>", "1 | 2\nnext", "&lt;", "a && b"]})


def test_a_page_shows_text_that_looks_like_tags():
    html = tables.shown(NASTY, "<script>note</script>").to_html()
    assert cells(html) == ["a<b", *NASTY["a<b"]]
    assert "&lt;script&gt;note" in html


def test_equal_tables_are_shown_as_equal_bytes_and_others_not():
    html = tables.shown(TABLE, NOTE).to_html()
    assert tables.shown(TABLE.copy(), NOTE).to_html() == html
    assert tables.shown(TABLE, "other").to_html().split()[2] != html.split()[2]


def test_markdown_shows_text_that_looks_like_tags(tmp_path):
    tables.save(NASTY, tmp_path, "table", "<script>note</script>")
    text = (tmp_path / "table.md").read_text()
    shown = [cell.replace("\n", " ") for cell in NASTY["a<b"]]
    assert cells(markdown2html(text.split("\n\n")[0])) == ["a<b", *shown]
    assert "<script" not in markdown2html(text)
    assert "a && b" in text


def test_a_page_shows_whole_texts_without_row_numbers():
    html = tables.shown(pd.concat([TABLE, TABLE])).to_html()  # two rows of every number
    assert "a sentence of more than thirty letters" in html
    assert "0.333<" in html
    assert "row_heading" not in html
