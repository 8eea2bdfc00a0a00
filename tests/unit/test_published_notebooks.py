"""Executed notebooks as they are published."""

import nbformat
import pytest

from clustered_fl.report.notebooks import light


def notebook(parameters: str) -> nbformat.NotebookNode:
    cells = [
        nbformat.v4.new_markdown_cell("# Title"),
        nbformat.v4.new_code_cell(parameters, metadata={"tags": ["injected-parameters"]}),
        nbformat.v4.new_code_cell("x = 1\n" * 1000),
    ]
    return nbformat.v4.new_notebook(cells=cells)


@pytest.mark.parametrize(("length", "kept"), [(5000, True), (5001, False)])
def test_only_parameters_that_can_be_read_are_published(length, kept):
    given = notebook("c" * length)
    once = light(given, None, "found")
    title, found, parameters, code = once.cells
    assert (title.source, found.source, code.source) == ("# Title", "found", "x = 1\n" * 1000)
    assert (parameters.source == "c" * length) == kept
    assert kept or "5,001 characters" in parameters.source
    assert given.cells[1].source == "c" * length
    assert light(once, None, "found") == once
