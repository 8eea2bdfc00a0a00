"""Every notebook: readable, leaves what the ledger promises, and a trace when it fails.

Notebooks that read studies run here on tiny ones, one of them through a kernel to its page.
"""

import ast
import json
import os
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
from tiny_results import contents

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
    shown = "nothing is random" if name == "flt_table6" else "1 seed"
    played.check_files(name, f"scale demo · {shown}")


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
    notebook.execute(source, given, records, tmp_path / "log.ipynb", page, minutes=5)
    text = page.read_text()
    assert (page.parent / f"{name}.png").stat().st_size > 10_000
    assert "data:image/png;base64" in text
    assert "The proof of Theorem 1 in pictures" in text
    # The box that keeps long parameters short is that of the cell which papermill has put in.
    assert re.search(r'class="[^"]* celltag_injected-parameters"', text)
    assert "<style>.celltag_injected-parameters .highlight { max-height" in text
    assert [tag for tag in ('src="http', 'href="http', "@import") if tag in text] == []


NASTY = "<script>alert('x')</script> & a<b"


def small_book(*sources: str) -> nbformat.NotebookNode:
    cells = [nbformat.v4.new_code_cell(source, id=f"cell-{i}") for i, source in enumerate(sources)]
    cells[0].metadata["tags"] = ["parameters"]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})


@pytest.fixture
def book(tmp_path):
    """Execute a notebook of these cells to out/a.html; `number` is 42 and `word` is nasty."""

    def execute(*sources: str, minutes: float = 5) -> Path:
        source, log, page = (tmp_path / name for name in ("a.ipynb", "log/a.ipynb", "out/a.html"))
        nbformat.write(small_book("number, word, out = 1, '', ''", *sources), source)
        page.parent.mkdir(exist_ok=True)
        given = {"number": 42, "word": NASTY}
        notebook.execute(source, given, index.build([]), log, page, minutes)
        return page

    return execute


EVERYTHING = """
import sys
from pathlib import Path

import pandas as pd

from clustered_fl import figures
from clustered_fl.figures import tables

for _ in range(50):
    print(number, flush=True)
    print("warned", file=sys.stderr, flush=True)
table = pd.DataFrame({"a<b": [word, "x | y"], "value": [0.1, 2.0]})
tables.save(table, Path(out), "table", word)
display(tables.shown(table, word), table, figures.panels)
print(word)
figure, axes = figures.panels(1, 1, 3.4, 2.6)
axes[0, 0].plot([1, 2], label="a<b")
figures.save(figure, table, Path(out), "figure", word)
"""


def test_every_file_is_the_same_byte_for_byte_when_executed_again(book):
    files = [dict(contents(book(EVERYTHING).parent)) for _ in range(2)]
    names = {f"a.{suffix}" for suffix in ("html", "ipynb")}
    names |= {f"figure.{suffix}" for suffix in ("csv", "pdf", "png", "svg")}
    names |= {f"table.{suffix}" for suffix in ("csv", "md", "tex")}
    assert files[0].keys() == names
    assert [name for name in names if files[0][name] != files[1][name]] == []
    assert b"data:image/png" in files[0]["a.html"]


def test_text_of_records_is_no_part_of_the_page_that_acts(book):
    """Whether it is printed, in a table of either kind, in a caption or a parameter."""
    page = book(EVERYTHING).read_text()
    assert "alert" not in "".join(re.findall(r"<script.*?</script>", page, re.DOTALL))
    assert page.count("&lt;script&gt;alert") >= 4
    assert ">a&lt;b</th>" in page
    assert NASTY.split()[-1] not in page


def test_the_executed_notebook_is_valid_and_has_what_was_shown(book):
    found = nbformat.read(book("print(number)").with_suffix(".ipynb"), as_version=4)
    nbformat.validate(found)
    assert [cell.id for cell in found.cells] == ["cell-0", "injected-parameters", "cell-1"]
    assert found.cells[-1].outputs[0].text == "42\n"


@pytest.mark.parametrize(
    ("source", "minutes", "what"),
    [
        (
            "print(number)\nnumber / 0",
            5,
            "failed in cell 4 with ZeroDivisionError: division by zero",
        ),
        (
            # What is printed leaves the kernel in a thread of its own.
            "import os, time\nprint(number)\ntime.sleep(2)\nos._exit(1)",
            5,
            "lost its kernel in cell 4, which may have taken all memory",
        ),
        (
            "print(number, flush=True)\nwhile True:\n    pass",
            0.2,
            "was not done after 0.2 minutes, in cell 4",
        ),
    ],
    ids=["failing", "dead", "endless"],
)
def test_a_notebook_that_does_not_end_well_is_one_sentence(book, tmp_path, source, minutes, what):
    with pytest.raises(InputError) as caught:
        book(
            "import os\nprint(os.getpid())\nnumber += 1", source, "print('never')", minutes=minutes
        )
    log = tmp_path / "log" / "a.ipynb"
    assert str(caught.value) == (
        f"a: {tmp_path / 'a.ipynb'} {what}; the executed notebook is {log}"
    )
    texts = [output.get("text") for cell in code_cells(log) for output in cell["outputs"]]
    assert "43\n" in texts
    assert "never\n" not in texts
    assert list((tmp_path / "out").iterdir()) == []
    with pytest.raises(ProcessLookupError):
        os.kill(int(texts[0]), 0)


def test_the_limit_is_of_all_cells_together(book):
    pause = "import time\ntime.sleep(3)"
    with pytest.raises(InputError, match=r"was not done after 0\.1 minutes, in cell [3-6];"):
        book(*[pause] * 4, minutes=0.1)
