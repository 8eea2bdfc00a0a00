"""Pages as a keyboard, a screen reader, a narrow screen and a printer meet them."""

import re
from importlib.resources import files

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from site_pages import pages
from tiny_results import write_results

from clustered_fl.report import notebooks, site

STYLE = files("clustered_fl.report").joinpath("templates/style.css").read_text()
PANDAS = """<div>
<style scoped>
    .dataframe thead th { text-align: right; }
</style>
<table border="1" class="dataframe"><tr><th></th><th>a</th></tr></table>
</div>"""


@pytest.fixture
def report(tmp_path):
    """The folder of a report."""
    scope = write_results(tmp_path / "demo")
    site.build(scope, scope.results / "report")
    return scope.results / "report"


def test_code_and_output_can_be_scrolled_by_keyboard(report):
    found = [found for tag, found in pages(report)["toy/toy_fig1.html"].tags if tag == "pre"]
    assert len(found) == 3
    assert all(each.get("tabindex") == "0" for each in found)


def test_so_can_code_in_markdown():
    text = "Some `words` and\n\n```python\nx = 1\n```\n"
    assert re.findall("<pre[^>]*>", notebooks.html(text)) == ['<pre tabindex="0">']


def test_blank_corners_of_tables_are_no_heads():
    """A screen reader would announce a head without a name."""
    cells = [
        new_markdown_cell("# A title"),
        new_markdown_cell("| | a |\n|---|---|\n| b | 1 |"),
        new_code_cell("", outputs=[new_output("execute_result", {"text/html": PANDAS})]),
    ]
    _, markdown, code = notebooks.shown(new_notebook(cells=cells))["cells"]
    (output,) = code["outputs"]
    for text in (markdown["text"], output["table"]):
        assert "<th></th>" not in text
        assert "<td></td>" in text
    assert "<style" not in output["table"]
    assert "border=" not in output["table"]


def test_what_is_folded_is_printed():
    """All but the many runs; and nothing scrolls on paper."""
    printed = STYLE[STYLE.index("@media print") :]
    assert "details:not(.entry)::details-content { content-visibility: visible; }" in printed
    assert ".scroll, .guide details pre { overflow: visible;" in printed
    # It follows the rules of the screen, which it overrides.
    assert STYLE.count("@media print") == 1
    assert STYLE.index("@media print") > STYLE.index(".guide pre {")


def test_what_sorts_claims_is_not_moved_out_of_sight():
    """It could still be focused there. Only the link that skips to the content may be."""
    assert re.findall(r"(\S+) \{[^}]*left: -\d+rem", STYLE) == [".skip"]
