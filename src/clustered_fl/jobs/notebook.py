"""Execute one parameterised notebook and render it as a page that reads offline."""

import os
from pathlib import Path
from typing import Any

import nbformat
import pandas as pd
import papermill
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
    notebook: Path, parameters: dict[str, Any], records: pd.DataFrame, executed: Path, page: Path
) -> None:
    """Run `notebook` with `parameters` and write its page when all cells have run.

    The executed notebook is written as it runs and stays when a cell fails, with the traceback.

    Args:
        parameters: values for the cell tagged `parameters`, but for `records` and `out`.
        records: index of what it reads, which is written beside the executed notebook.
    Raises: InputError if a cell fails, naming the error and the executed notebook.
    """
    known = executed.with_suffix(".csv")
    index.write(records, known)
    parameters = {**parameters, "records": str(known), "out": str(page.parent)}
    # A backend that the caller's shell has chosen would leave the page without pictures.
    os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"
    try:
        papermill.execute_notebook(
            notebook, executed, parameters, kernel_name="python3", progress_bar=False
        )
    except papermill.PapermillExecutionError as error:
        raise InputError(
            f"{notebook} failed in cell {error.exec_count} with {error.ename}: {error.evalue}; "
            f"the executed notebook is {executed}"
        ) from error
    except (OSError, ValueError) as error:
        raise InputError(f"cannot execute {notebook}: {error}") from error
    exporter = HTMLExporter(exclude_input_prompt=True, exclude_output_prompt=True)
    # Nothing on the page may come from the network.
    exporter.mathjax_url = exporter.require_js_url = exporter.mermaid_js_url = ""
    body, _ = exporter.from_notebook_node(nbformat.read(executed, as_version=4))
    with replacing(page) as beside:
        beside.write_text(body.replace("</head>", f"<style>{STYLE}</style></head>", 1))
