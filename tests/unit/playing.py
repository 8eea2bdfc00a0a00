"""Notebooks run cell by cell in this process, on folders that a test has made.

Starting a kernel for each would take longer than everything that they compute.
"""

import ast
from functools import cache
from pathlib import Path

import matplotlib.pyplot as plt
import nbformat
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.text import Text

from clustered_fl.ledger.schema import Artefact
from clustered_fl.records import index
from clustered_fl.workflow.artefacts import FORMATS

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
Made = pd.DataFrame
"""The index of all records that a test has made (`clustered_fl.records.index`)."""
Artefacts = dict[str, Artefact]
"""Of one ledger or of several, by name."""


def code_cells(path: Path) -> list[nbformat.NotebookNode]:
    """The cells of a notebook that compute something."""
    return [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]


def is_parameters(cell: nbformat.NotebookNode) -> bool:
    """Whether the workflow puts its own values after this cell."""
    return "parameters" in cell["metadata"].get("tags", [])


def is_for_readers(cell: nbformat.NotebookNode) -> bool:
    """Whether it is the cell that gets what is published, where nothing else is given."""
    return "opened" in cell["metadata"].get("tags", [])


def parameters(name: str, entry: Artefact, made: Made, out: Path) -> dict:
    """What the workflow gives to the notebook of artefact `name`, which writes to `out`."""
    asked = {
        kind: getattr(entry, f"{kind}s" if kind != "study" else "studies")
        for kind in ("run", "grouping", "encoder", "study")
    }
    own = [kind for kind, names in asked.items() if names]
    records = [index.chosen(made, kind, *asked[kind]) for kind in own]
    path = out.with_name(f"{out.name}.records.csv")
    index.write(pd.concat(records) if records else index.build([]), path)
    given = {"artefact": name, "records": str(path), "scale": "demo", "source": "builtin"}
    return given | {"out": str(out)} | entry.parameters


def play(name: str, entry: Artefact, made: Made, out: Path) -> dict:
    """Run the notebook of artefact `name` in this process and return its variables."""
    return run_notebook(NOTEBOOKS / entry.notebook, parameters(name, entry, made, out))


def run_notebook(path: Path, given: dict | None = None) -> dict:
    """Run a notebook in this process, with given parameters or its own; its variables."""
    given = given or {}
    variables = {"__name__": "__main__", "display": _show}
    for cell in code_cells(path):
        _run(cell["source"], f"{path.stem} {cell['id']}", variables)
        if is_parameters(cell):
            unknown = given.keys() - variables.keys()
            assert unknown == set(), f"{path} has no such parameter"
            variables |= given
    plt.close("all")
    return variables


def _run(source: str, name: str, variables: dict) -> None:
    """Run a cell as a kernel does, which also shows the value of its last line."""
    lines = ast.parse(source, name).body
    last = lines.pop() if lines and isinstance(lines[-1], ast.Expr) else None
    exec(compile(ast.Module(lines, []), name, "exec"), variables)
    if last:
        _show(eval(compile(ast.Expression(last.value), name, "eval"), variables))


def _show(value: object) -> None:
    if hasattr(value, "_repr_html_"):
        value._repr_html_()


PHONE = 358
"""Width of a picture in pixels on a page of 390, the margins taken away."""


def smallest_text(figure: Figure) -> float:
    """Points of a figure's smallest text where a phone shows it as wide as the page."""
    texts = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text()]
    return min(text.get_fontsize() for text in texts) * PHONE / (96 * figure.get_figwidth())


class Played:
    """Artefacts, each played once, when it is first asked for.

    Args:
        place: a new folder per artefact is made below it.
    """

    def __init__(self, entries: Artefacts, made: Made, place: Path) -> None:
        self.entries, self.made, self._place = entries, made, place
        self._once = cache(self._play)

    def _play(self, name: str) -> tuple[Path, dict]:
        out = self._place / name
        out.mkdir()
        return out, play(name, self.entries[name], self.made, out)

    def folder(self, name: str) -> Path:
        """What the artefact has left."""
        return self._once(name)[0]

    def variables(self, name: str) -> dict:
        """Those of its notebook at the end."""
        return self._once(name)[1]

    def table(self, name: str, **options) -> pd.DataFrame:
        """The numbers behind the artefact."""
        return pd.read_csv(self.folder(name) / f"{name}.csv", **options)

    def check_files(self, name: str, note: str) -> None:
        """All promised files are there, no column is empty, and the note begins as it should.

        Texts of figures have seven points on a phone.
        """
        if self.entries[name].kind == "figure":
            assert smallest_text(self.variables(name)["figure"]) >= 7
        promised = {f"{name}.{suffix}" for suffix in FORMATS[self.entries[name].kind]}
        assert {path.name for path in self.folder(name).iterdir()} == promised
        assert self.variables(name)["note"].startswith(note)
        table = self.table(name, keep_default_na=False)
        assert len(table)
        assert [column for column in table if (table[column].astype(str) == "").all()] == []

    def check_again(self, name: str, out: Path) -> None:
        """Played again, the files are the same byte for byte."""
        first = self.folder(name).iterdir()
        play(name, self.entries[name], self.made, out)
        differ = [p.name for p in first if p.read_bytes() != (out / p.name).read_bytes()]
        assert differ == []
