"""Execute one parameterised notebook and render it as a page that reads offline."""

import math
import os
import re
import time
from pathlib import Path
from typing import Any

import nbformat
import pandas as pd
import papermill
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbconvert import HTMLExporter

from clustered_fl.errors import InputError
from clustered_fl.files import replacing
from clustered_fl.records import index

STYLE = ".celltag_injected-parameters .highlight { max-height: 14em; overflow: auto }"
"""A table can be made from a hundred runs, whose names would come before what it says."""


def prepare(notebook: Path, parameters: dict[str, Any], out: Path) -> None:
    """Write `notebook` with `parameters` and do not execute it.

    Raises: InputError if it cannot be read or written.
    """
    about = {"kernel_name": "python3", "progress_bar": False, "prepare_only": True}
    try:
        papermill.execute_notebook(notebook, out, parameters, **about)
    except (OSError, ValueError) as error:
        raise InputError(f"cannot prepare {notebook}: {error}") from error


def execute(
    notebook: Path,
    parameters: dict[str, Any],
    records: pd.DataFrame,
    executed: Path,
    page: Path,
    minutes: float,
) -> None:
    """Run `notebook` with `parameters`; write page and executed notebook when all cells have run.

    Equal records give equal bytes. What has run is in `executed` while it runs, and stays there
    when a cell fails, with the traceback.

    Args:
        parameters: values for the cell tagged `parameters`, but for `records` and `out`.
        records: index of what it reads, which is written beside `executed`.
        page: HTML; the executed notebook is written beside it.
        minutes: all cells together may take.
    Raises: InputError if a cell fails, kills its kernel or does not end, naming it and `executed`.
    """
    known = executed.with_suffix(".csv")
    index.write(records, known)
    parameters = {**parameters, "records": str(known), "out": str(page.parent)}
    # A backend that the caller's shell has chosen would leave the page without pictures.
    os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"
    try:
        found = _run(notebook, parameters, executed, minutes)
    except papermill.PapermillExecutionError as error:
        what = f"failed in cell {error.exec_count} with {error.ename}: {error.evalue}"
    except DeadKernelError:
        what = f"lost its kernel in cell {_last(executed)}, which may have taken all memory"
    except CellTimeoutError:
        what = f"was not done after {minutes:g} minutes, in cell {_last(executed)}"
    except (OSError, RuntimeError, ValueError) as error:
        raise InputError(f"{page.stem}: cannot execute {notebook}: {error}") from error
    else:
        _write(found, page)
        return
    raise InputError(f"{page.stem}: {notebook} {what}; the executed notebook is {executed}")


def _run(
    notebook: Path, parameters: dict[str, Any], executed: Path, minutes: float
) -> nbformat.NotebookNode:
    begun: list[float] = []

    def left(cell: nbformat.NotebookNode) -> int:
        """Seconds for this cell, since the first began; zero would mean no limit at all."""
        begun.append(time.monotonic())
        return max(1, math.ceil(begun[0] + 60 * minutes - begun[-1]))

    found = papermill.execute_notebook(
        notebook,
        executed,
        parameters,
        kernel_name="python3",
        progress_bar=False,
        timeout_func=left,
        # A loaded machine may start a kernel late, and deliver outputs late, in pieces, and in
        # another order.
        start_timeout=600,
        iopub_timeout=600,
        coalesce_streams=True,
        record_timing=False,
    )
    return _lasting(found)


def _lasting(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Without what differs between two executions: times, drawn names, addresses in memory."""
    notebook.metadata.pop("papermill")
    notebook.metadata.language_info = {"name": "python"}
    for cell in notebook.cells:
        cell.metadata.pop("papermill")
        if "injected-parameters" in cell.metadata.tags:
            cell.id = "injected-parameters"
        for output in cell.get("outputs", []):
            if "text/plain" in output.get("data", {}):
                text = output.data["text/plain"]
                output.data["text/plain"] = re.sub(r" at 0x[0-9a-f]+", "", text)
    return notebook


def _last(executed: Path) -> int:
    """Number of the last cell of code that was begun, as the executed notebook counts them."""
    cells = nbformat.read(executed, as_version=4).cells
    begun = [cell for cell in cells if cell.metadata.papermill.start_time]
    return sum(cell.cell_type == "code" for cell in begun)


def _write(notebook: nbformat.NotebookNode, page: Path) -> None:
    exporter = HTMLExporter(exclude_input_prompt=True, exclude_output_prompt=True)
    # Nothing on the page may come from the network.
    exporter.mathjax_url = exporter.require_js_url = exporter.mermaid_js_url = ""
    body, _ = exporter.from_notebook_node(notebook)
    with replacing(page.with_suffix(".ipynb")) as beside:
        nbformat.write(notebook, beside)
    with replacing(page) as beside:
        beside.write_text(body.replace("</head>", f"<style>{STYLE}</style></head>", 1))
