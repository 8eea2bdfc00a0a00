"""Notebooks run cell by cell in this process, on folders that a test has made.

Starting a kernel for each would take longer than everything that they compute.
"""

from collections.abc import Iterable
from pathlib import Path

import matplotlib.pyplot as plt
import nbformat
import pandas as pd

from clustered_fl.plan import FORMATS
from clustered_fl.schema import Ledger

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
Made = dict[str, dict]
"""What the workflow passes: "runs", "groupings", "encoders", each name -> what it would get."""


def play(ledger: Ledger, name: str, made: Made, out: Path) -> dict:
    """Run the notebook of artefact `name`, which writes to `out`, and return its variables."""
    entry, variables = ledger.artefacts[name], {"__name__": "__main__"}
    given = {"artefact": name, "studies": {}, "scale": "demo", "source": "builtin", "out": str(out)}
    given |= {kind: {n: made[kind][n] for n in getattr(entry, kind)} for kind in made}
    given |= entry.parameters
    for cell in nbformat.read(NOTEBOOKS / entry.notebook, as_version=4).cells:
        if cell.cell_type == "code":
            exec(compile(cell["source"], f"{name} {cell['id']}", "exec"), variables)
            if "parameters" in cell["metadata"].get("tags", []):
                unknown = [key for key in given if given[key] and key not in variables]
                assert unknown == [], f"{entry.notebook} has no such parameter"
                variables |= given
    plt.close("all")
    return variables


class Played:
    """The artefacts `names` of a ledger, each played once.

    Args:
        place: a new folder per artefact is made below it.
    """

    def __init__(self, ledger: Ledger, names: Iterable[str], made: Made, place: Path) -> None:
        self.ledger, self.made, self._place = ledger, made, place
        self.variables = {name: play(ledger, name, made, self.folder(name)) for name in names}

    def folder(self, name: str) -> Path:
        """What the artefact has left."""
        folder = self._place / name
        folder.mkdir(exist_ok=True)
        return folder

    def table(self, name: str, **options) -> pd.DataFrame:
        """The numbers behind the artefact."""
        return pd.read_csv(self.folder(name) / f"{name}.csv", **options)

    def check_files(self, name: str, note: str) -> None:
        """All promised files are there, no column is empty, and the note begins as it should."""
        promised = {f"{name}.{suffix}" for suffix in FORMATS[self.ledger.artefacts[name].kind]}
        assert {path.name for path in self.folder(name).iterdir()} == promised
        assert self.variables[name]["note"].startswith(note)
        table = self.table(name, keep_default_na=False)
        assert len(table)
        assert [column for column in table if (table[column].astype(str) == "").all()] == []

    def check_again(self, name: str, out: Path) -> None:
        """Played again, the files are the same byte for byte."""
        play(self.ledger, name, self.made, out)
        first = self.folder(name).iterdir()
        differ = [p.name for p in first if p.read_bytes() != (out / p.name).read_bytes()]
        assert differ == []
