"""Executed notebooks as they are published: light, with the figure by reference; and as a page."""

import re
from copy import deepcopy
from pathlib import Path
from typing import Any

import nbformat
from markupsafe import Markup
from nbconvert.filters import markdown2html
from nbformat import NotebookNode

from clustered_fl.errors import InputError

FOUND = "found"
"""Id of the cell that is put below the title: the figure, what it decides, and the way back."""
_READING = "## How to read it"
_PICTURE = "image/png"
_INJECTED = "injected-parameters"
_STYLE = re.compile(r"<style scoped>.*?</style>\s*", re.DOTALL)
_CORNER = ("<th></th>", "<td></td>")
_LONGEST = 5000
"""Characters of parameters that a published notebook shows; papermill injects up to 80,000."""


def read(path: Path) -> NotebookNode:
    """An executed notebook; InputError if it is none."""
    try:
        return nbformat.read(path, as_version=4)
    except (OSError, ValueError, nbformat.ValidationError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"cannot read {path}: {reason}; make the artefact again") from error


def light(notebook: NotebookNode, figure: str | None, found: str) -> NotebookNode:
    """The notebook with `found`, Markdown, below its title; again, the same of its own result.

    Sites that show notebooks find a picture that Markdown names, so that its bytes are there once.
    Parameters that are too long to read, such as all cells of a table, are left out.

    Args:
        figure: name of the picture beside it that its last picture is, if any.
    """
    cells = [_readable(deepcopy(cell)) for cell in notebook.cells if cell.id != FOUND]
    pictures = [
        output
        for cell in cells
        for output in cell.get("outputs", [])
        if _PICTURE in output.get("data", {})
    ]
    if figure and pictures:
        pictures[-1].data = NotebookNode({"text/plain": f"{figure}, shown above"})
        pictures[-1].metadata = NotebookNode({"figure": figure})
    cells.insert(1, nbformat.v4.new_markdown_cell(found, id=FOUND))
    return NotebookNode(notebook | {"cells": cells})


def _readable(cell: NotebookNode) -> NotebookNode:
    size = len(cell.source)
    if _INJECTED in cell.metadata.get("tags", []) and size > _LONGEST:
        cell.source = f"# {size:,} characters of parameters from the ledger are left out here."
    return cell


def shown(notebook: NotebookNode) -> dict[str, Any]:
    """What a page shows of a light notebook.

    Returns:
        `reading`, the section that says how to read the artefact, "" if there is none; `cells`, all
        others in their order: `text` as HTML, or `code` with `outputs`. The title is left out.
    """
    first, *others = (cell for cell in notebook.cells if cell.id != FOUND)
    title, _, rest = first.source.partition("\n")
    text = rest if title.startswith("# ") else first.source
    first = NotebookNode(first | {"source": text})
    texts = [cell.source for cell in others if cell.source.startswith(_READING)]
    cells = [cell for cell in (first, *others) if cell.source not in texts]
    return {
        "reading": html("\n\n".join(texts).replace(_READING, "", 1)),
        "cells": [_cell(cell) for cell in cells],
    }


def _cell(cell: NotebookNode) -> dict[str, Any]:
    if cell.cell_type != "code":
        return {"text": html(cell.source)}
    outputs = [_output(each) for each in cell.outputs if "figure" not in each.get("metadata", {})]
    return {"code": cell.source, "outputs": outputs}


def _output(output: NotebookNode) -> dict[str, Any]:
    """An output by what it is: `table` (HTML, which notebooks escape), `picture` or `text`."""
    data = output.get("data", {})
    if _PICTURE in data:
        return {"picture": data[_PICTURE].replace("\n", "")}
    if "text/html" in data:
        return {"table": Markup(_plain(data["text/html"]))}
    return {"text": output.get("text") or data.get("text/plain", "")}


def _plain(table: str) -> str:
    """A table of pandas in the style of the page; its blank corners are no heads."""
    return _STYLE.sub("", table).replace(' border="1"', "").replace(*_CORNER)


def html(markdown: str) -> Markup:
    """Markdown of ours as HTML, with code that can be scrolled by keyboard."""
    if not markdown.strip():
        return Markup("")
    found = markdown2html(markdown).replace("<pre>", '<pre tabindex="0">')
    return Markup(found.replace(*_CORNER))
