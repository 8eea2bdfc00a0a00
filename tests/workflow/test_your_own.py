"""docs/add_your_own.md is true: what it adds in one file and one entry each is planned and run."""

import re
import subprocess
import sys
from pathlib import Path

import nbformat
import numpy as np
import pandas as pd
import pytest
import yaml
from PIL import Image

from clustered_fl.workflow.kinds import FILES
from workflow.small_project import COPIED, ROOT, Project, rules, subjects

PAGE = (ROOT / "docs" / "add_your_own.md").read_text()
GROUND = Path("config", "papers", "ground.yaml")
MATRIX = "results/demo/artefacts/ground_matrix/ground_matrix.csv"
RECORD = "results/demo/groupings/ground_groups_negative_mean_image/seed0/record.json"
ROWS = ("fedavg", "mean_image", "then_alone")
PLAN = ("ground_matrix", "--config", "papers=[ground]")
PICTURES = ("ground_pictures", "--config", "papers=[ground]", "scale=desktop", "mirror=mirror")


def modules() -> dict[str, str]:
    """Path -> code of the files that the page tells to write."""
    return dict(
        re.findall(r"^`(src/[\w/]+\.py)`:\n\n```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    )


def entries() -> list[tuple[str, str]]:
    """Section and text of the entries that the page tells to append to the ledger."""
    start = r"`config/papers/ground.yaml`, at the end of `(\w+)`:\n\n```yaml\n(.*?)^```"
    return re.findall(start, PAGE, re.MULTILINE | re.DOTALL)


def blocks(chapter: str) -> list[str]:
    """The code and the entries of a chapter of the page, in its order."""
    text = PAGE.split(f"\n## {chapter}\n")[1].split("\n## ")[0]
    return re.findall(r"^```(?:python|yaml)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def appended(text: str, section: str, entry: str) -> str:
    """YAML with an entry at the end of a section: before the next line that is indented less."""
    indent = len(entry) - len(entry.lstrip())
    (head,) = re.finditer(rf"^ {{{indent - 2}}}{section}:\n", text, re.MULTILINE)
    after = re.compile(rf"^ {{0,{indent - 1}}}[^\s#]", re.MULTILINE).search(text, head.end())
    return f"{text[: after.start()]}{entry}\n{text[after.start() :]}"


def with_entries() -> str:
    """The committed ledger with everything of the page."""
    text = (ROOT / GROUND).read_text()
    for section, entry in entries():
        text = appended(text, section, entry)
    return text


def matrix_of(ledger: dict) -> dict:
    return ledger["tables"]["matrix"]


@pytest.fixture(scope="module")
def extended(tmp_path_factory) -> Project:
    """A copy of the project with what the page adds, and without most of what there is."""
    project = Project(tmp_path_factory.mktemp("your_own") / "project")
    ledger = yaml.safe_load(with_entries())
    table = matrix_of(ledger)
    table["columns"] = {"negative": table["columns"]["negative"]}
    table["rows"] = {name: table["rows"][name] for name in ROWS}
    table["cells"] = {}
    ledger["artefacts"] = {"ground_matrix": ledger["artefacts"]["ground_matrix"]}
    ledger["claims"] = {}
    (project.root / GROUND).write_text(yaml.safe_dump(ledger, sort_keys=False))
    for name, code in modules().items():
        (project.root / name).write_text(code)
    return project


def test_the_page_has_a_file_and_an_entry_of_each_kind():
    folders = [Path(name).parent.name for name in modules()]
    assert folders == ["groupings", "methods", "partitions"]
    sections = ["artefacts", *["rows"] * 2, *["columns"] * 2, "artefacts"]
    assert [section for section, _ in entries()] == sections


def test_the_files_keep_the_rules_of_the_project():
    import style_checks as style

    for name, code in modules().items():
        place = Path(name).relative_to("src/clustered_fl")
        complaints = style.length(code) + style.documentation(code) + style.direction(place, code)
        assert complaints == [], name


def test_the_entries_fit_the_committed_ledger():
    """Anchors that they use are there, and no name is taken."""
    before, after = yaml.safe_load((ROOT / GROUND).read_text()), yaml.safe_load(with_entries())
    for section, new in {"columns": ["negative", "pictures"], "rows": list(ROWS[1:])}.items():
        known = list(matrix_of(before)[section])
        assert list(matrix_of(after)[section]) == [*known, *new]
    new = ["ground_mine", "ground_pictures"]
    assert list(after["artefacts"]) == [*before["artefacts"], *new]


def test_one_file_and_one_entry_are_planned_as_runs(extended):
    plan = extended.plan(*PLAN)
    assert subjects(plan, "train") == {f"ground_negative_{name} 0" for name in ROWS}
    assert subjects(plan, "grouping") == {"ground_groups_negative_mean_image 0"}
    (clients,) = subjects(plan, "partition")
    assert re.fullmatch(r"negative_[0-9a-f]{16} 0", clients)


@pytest.fixture(scope="module")
def matrix(extended) -> pd.DataFrame:
    """The matrix that the copy makes."""
    extended.make(*PLAN)
    return pd.read_csv(extended.root / MATRIX).set_index("method")


def test_they_get_a_row_in_the_matrix(matrix):
    assert list(matrix.index) == list(ROWS)
    assert set(matrix["setting"]) == {"negative"}
    assert matrix[["accuracy", "gain", "worst", "megabytes"]].notna().all(axis=None)


def test_the_clustering_of_the_page_tells_negatives_apart(matrix):
    assert matrix.loc["mean_image", ["agreement", "groups"]].tolist() == [1, 2]
    assert matrix.loc["fedavg", ["agreement", "groups"]].tolist() == [0, 1]


def test_the_method_of_the_page_ends_with_every_client_alone(matrix):
    assert matrix.loc["then_alone", "groups"] == 12


def test_what_was_computed_is_kept_for_others(extended, matrix, tmp_path):
    """The grouping too, which then needs neither clients nor data."""
    extended.make("archive", *PLAN[1:])
    clone = Project(tmp_path / "project", extended.root, (*COPIED, "figures"))
    assert rules(clone.plan(*PLAN)) == {"restore_run", "restore_grouping", "figure", PLAN[0]}
    clone.make(RECORD, *PLAN[1:])
    folder = Path(RECORD).parent
    for name in FILES["grouping"]:
        here, there = (each.root / folder / name for each in (clone, extended))
        assert here.read_bytes() == there.read_bytes(), name


def test_a_further_entry_leaves_what_was_trained_alone(extended, matrix):
    path = extended.root / GROUND
    ledger = yaml.safe_load(path.read_text())
    matrix_of(ledger)["rows"]["local"] = {"title": "Local", "method": {"name": "local"}}
    path.write_text(yaml.safe_dump(ledger, sort_keys=False))
    plan = extended.plan(*PLAN)
    assert subjects(plan, "train") == {"ground_negative_local 0"}
    assert {job.rule for job in plan} == {"train", "figure", "ground_matrix"}


# ---- A dataset -----------------------------------------------------------------------------------


def draw(folder: Path) -> None:
    """Circles and squares of six owners, 40 to train with and ten to test on each."""
    across, down = np.meshgrid(np.arange(32) - 16, np.arange(32) - 16)
    shapes = {"circle": np.hypot(across, down), "square": np.maximum(abs(across), abs(down))}
    random = np.random.default_rng(0)
    for split, count in (("train", 20), ("test", 5)):
        for label, distance in shapes.items():
            (folder / split / label).mkdir(parents=True)
            for owner in range(6):
                for number in range(count):
                    pixels = np.uint8(255 * (distance < random.integers(6, 14)))
                    Image.fromarray(pixels).save(folder / split / label / f"{owner}_{number}.png")


@pytest.fixture(scope="module")
def illustrated(tmp_path_factory) -> Project:
    """A copy of the project with the dataset of the page, and the ledger with its entries alone."""
    project = Project(tmp_path_factory.mktemp("pictures") / "project")
    draw(project.root / "pictures")
    code, entry, *_ = blocks("A dataset")
    environment = {"HF_HOME": str(project.root / "hub"), "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-c", code]
    subprocess.run(command, cwd=project.root, env=environment, check=True, capture_output=True)
    with (project.root / "config" / "datasets.yaml").open("a") as file:
        file.write(f"\n{entry}")
    text = (ROOT / GROUND).read_text()
    for section, added in entries()[-2:]:
        text = appended(text, section, added)
    (project.root / GROUND).write_text(text)
    return project


def test_a_dataset_of_one_s_own_is_planned_and_trained(illustrated):
    """With all six methods and, because every training takes seconds, two of them."""
    plan = illustrated.plan(*PICTURES)
    six = ("fedavg", "local", "cfl", "ifca", "fedsem", "pacfl")
    assert subjects(plan, "train") == {f"ground_pictures_{row} 0" for row in six}
    assert subjects(plan, "grouping") == {"ground_groups_pictures_pacfl 0"}
    assert subjects(plan, "dataset") == {"pictures"}
    with illustrated.edited(str(GROUND), ", ".join(six), ", ".join(six[:2])):
        illustrated.make(*PICTURES)
    folder = illustrated.root / "results/desktop/artefacts/ground_pictures"
    table = pd.read_csv(folder / "ground_pictures.csv")
    last = table.dropna(subset=["accuracy"]).groupby("method")["accuracy"].last()
    assert set(last.index) == set(six[:2])
    assert last["local"] > 60  # of two classes


# ---- A paper -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def replication(tmp_path_factory) -> Project:
    """A copy of the project with the ledger of the page and its notebook."""
    project = Project(tmp_path_factory.mktemp("paper") / "project")
    ledger, parameters, cell = blocks("A paper")
    (project.root / "config" / "papers" / "mine.yaml").write_text(ledger)
    cells = [
        nbformat.v4.new_code_cell(parameters, metadata={"tags": ["parameters"]}),
        nbformat.v4.new_code_cell(cell),
    ]
    about = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    path = project.root / "notebooks" / "mine" / "accuracy.ipynb"
    path.parent.mkdir()
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=about), path)
    return project


def test_a_paper_of_one_s_own_is_planned_and_reported(replication):
    mine = "--config", "papers=[mine]"
    assert subjects(replication.plan(*mine), "train") == {"mine_fedavg 0", "mine_ifca 0"}
    replication.make(*mine)
    report = replication.root / "results" / "demo" / "report" / "mine"
    table = pd.read_csv(report / "mine_accuracy.csv")
    assert list(table["run"]) == ["mine_fedavg", "mine_ifca"]
    assert pd.read_csv(report / "verdicts.csv")["verdict"].tolist() == ["DEMO ONLY"]
