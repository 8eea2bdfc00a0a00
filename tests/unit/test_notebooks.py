"""Every notebook: readable, leaves what the ledger promises, and a trace when it fails.

Notebooks that read studies run here on tiny ones, one of them through a kernel to its page.
"""

import ast
import json
import re
from itertools import pairwise
from pathlib import Path

import nbformat
import pytest
import tiny_studies
from playing import (
    NOTEBOOKS,
    Made,
    Played,
    code_cells,
    is_for_readers,
    is_parameters,
    parameters,
)

from clustered_fl.errors import InputError
from clustered_fl.jobs import notebook
from clustered_fl.ledger.reading import load_ledger
from clustered_fl.records import index
from clustered_fl.records.reading import load_tables

PAPERS = Path(__file__).parents[2] / "config" / "papers"
LEDGERS = [load_ledger(path) for path in sorted(PAPERS.glob("*.yaml"))]
ARTEFACTS = {name: entry for ledger in LEDGERS for name, entry in ledger.artefacts.items()}
STUDIES = {name: entry for ledger in LEDGERS for name, entry in ledger.studies.items()}
FROM_STUDIES = [name for name, entry in ARTEFACTS.items() if entry.studies and not entry.runs]


def path_name(path: Path) -> str:
    return str(path.relative_to(NOTEBOOKS))


every_notebook = pytest.mark.parametrize("path", sorted(NOTEBOOKS.rglob("*.ipynb")), ids=path_name)


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Made:
    folders = {}
    for study in sorted({study for name in FROM_STUDIES for study in ARTEFACTS[name].studies}):
        folders[study] = tmp_path_factory.mktemp(study)
        tiny_studies.execute(STUDIES[study], folders[study])
    return index.build(("study", name, name, 0, str(path)) for name, path in folders.items())


@pytest.fixture(scope="module")
def played(made, tmp_path_factory) -> Played:
    return Played(ARTEFACTS, made, tmp_path_factory.mktemp("artefacts"))


@every_notebook
def test_notebook_belongs_to_an_artefact(path):
    shown = {entry.notebook for entry in ARTEFACTS.values()}
    assert path_name(path) in shown or path.parent.name == "examples"


@pytest.mark.parametrize("name", ARTEFACTS)
def test_parameters_cell_knows_what_the_workflow_passes(name, tmp_path):
    cells = code_cells(NOTEBOOKS / ARTEFACTS[name].notebook)
    (source,) = (cell["source"] for cell in cells if is_parameters(cell))
    known = {target.id for line in ast.parse(source).body for target in line.targets}
    assert known >= parameters(name, ARTEFACTS[name], index.build([]), tmp_path / "out").keys()


@every_notebook
def test_every_code_cell_is_introduced(path):
    cells = nbformat.read(path, as_version=4).cells
    kinds = [cell.cell_type for cell in cells if not is_for_readers(cell)]
    assert ("code", "code") not in pairwise(kinds)
    assert kinds[0] == "markdown"


@every_notebook
def test_cells_have_ids_that_stay(path):
    content = json.loads(path.read_text())
    assert (content["nbformat"], content["nbformat_minor"]) == (4, 5)
    ids = [cell["id"] for cell in content["cells"]]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("name", FROM_STUDIES)
def test_promised_files_are_there(name, played):
    # No dataset is involved, so the warning of stand-ins would mislead.
    played.check_files(name, "scale demo · 1 seed")


# One artefact per notebook, as the others differ by a parameter only.
@pytest.mark.parametrize("name", {ARTEFACTS[name].notebook: name for name in FROM_STUDIES}.values())
def test_files_are_the_same_every_time(name, played, tmp_path):
    played.check_again(name, tmp_path)


def test_every_check_of_the_theory_is_a_row(played, made):
    table = played.variables("cfl_theorems")["table"]
    checks = load_tables(index.folder(made, "study", "cfl_theorems"))["checks"]
    # The last two rows are about the recursion of the public demonstration.
    found = table.iloc[:-2]
    assert sorted(found["trials"]) == sorted(checks["trials"])
    assert found["violations"].sum() == checks["violations"].sum()
    # Names for machines would mean that a new check has no statement yet.
    assert not table["statement"].str.contains("_").any()


def test_page_reads_offline_and_holds_the_figure(made, tmp_path, monkeypatch):
    # Set, it would keep figures off the page.
    monkeypatch.delenv("MPLBACKEND")
    name, page = "cfl_arxiv_fig12", tmp_path / "out" / "page.html"
    given = {"artefact": name, "scale": "demo", "source": "builtin"} | ARTEFACTS[name].parameters
    records = index.chosen(made, "study", *ARTEFACTS[name].studies)
    page.parent.mkdir()
    source = NOTEBOOKS / ARTEFACTS[name].notebook
    notebook.execute(source, given, records, tmp_path / "log.ipynb", page)
    text = page.read_text()
    assert (page.parent / f"{name}.png").stat().st_size > 10_000
    assert "data:image/png;base64" in text
    assert "The proof of Theorem 1 in pictures" in text
    # The box that keeps long parameters short is that of the cell which papermill has put in.
    assert re.search(r'class="[^"]* celltag_injected-parameters"', text)
    assert "<style>.celltag_injected-parameters .highlight { max-height" in text
    assert [tag for tag in ('src="http', 'href="http', "@import") if tag in text] == []


def small_book(*sources: str) -> nbformat.NotebookNode:
    cells = [nbformat.v4.new_code_cell(source, id=f"cell-{i}") for i, source in enumerate(sources)]
    cells[0].metadata["tags"] = ["parameters"]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})


def test_failing_cell_leaves_the_notebook_and_one_sentence(tmp_path):
    source, log, page = (tmp_path / name for name in ("a.ipynb", "log/a.ipynb", "a.html"))
    records = index.build([])
    nbformat.write(small_book("number = 1", "print(number)", "number / 0", "never"), source)
    with pytest.raises(InputError) as caught:
        notebook.execute(source, {"number": 42}, records, log, page)
    sentence = str(caught.value)
    assert sentence == (
        f"{source} failed in cell 4 with ZeroDivisionError: division by zero; "
        f"the executed notebook is {log}"
    )
    outputs = [output for cell in code_cells(log) for output in cell["outputs"]]
    assert "42\n" in [output.get("text") for output in outputs]
    assert [output["ename"] for output in outputs if output["output_type"] == "error"] == [
        "ZeroDivisionError"
    ]
    assert not page.exists()
