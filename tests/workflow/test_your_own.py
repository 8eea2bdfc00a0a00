"""docs/add_your_own.md is true: what it adds in one file and one entry each is planned and run."""

import re
from pathlib import Path

import pandas as pd
import pytest
import yaml

from workflow.small_project import ROOT, Project, subjects

PAGE = (ROOT / "docs" / "add_your_own.md").read_text()
MATRIX = "results/demo/artefacts/ground_matrix/ground_matrix.csv"
CONTENDERS = ("fedavg", "mean_image", "then_alone")
PLAN = ("ground_matrix", "--config", "papers=[ground]")


def modules() -> dict[str, str]:
    """Path -> code of the files that the page tells to write."""
    return dict(
        re.findall(r"^`(src/[\w/]+\.py)`:\n\n```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    )


def entries() -> list[tuple[str, str]]:
    """Section and text of the entries that the page tells to append."""
    start = r"^`config/papers/ground.yaml`, at the end of `(\w+)`:\n\n```yaml\n(.*?)^```"
    return re.findall(start, PAGE, re.MULTILINE | re.DOTALL)


def appended(ledger: str) -> dict:
    """The ledger with the page's entries at the end of their sections."""
    after = {"grounds": "contenders", "contenders": "runs"}
    for section, entry in entries():
        head = f"\n{after[section]}:"
        assert ledger.count(head) == 1
        ledger = ledger.replace(head, f"\n{entry}{head}")
    return yaml.safe_load(ledger)


@pytest.fixture(scope="module")
def extended(tmp_path_factory) -> Project:
    """A copy of the project with what the page adds, and without most of what there is."""
    project = Project(tmp_path_factory.mktemp("your_own") / "project")
    path = project.root / "config" / "papers" / "ground.yaml"
    ledger = appended(path.read_text())
    ledger["grounds"] = {"negative": ledger["grounds"]["negative"]}
    ledger["contenders"] = {name: ledger["contenders"][name] for name in CONTENDERS}
    ledger["artefacts"] = {"ground_matrix": ledger["artefacts"]["ground_matrix"]}
    path.write_text(yaml.safe_dump(ledger | {"claims": {}}, sort_keys=False))
    for name, code in modules().items():
        (project.root / name).write_text(code)
    return project


def test_the_page_has_a_file_and_an_entry_of_each_kind():
    folders = [Path(name).parent.name for name in modules()]
    assert folders == ["groupings", "methods", "partitions"]
    assert [section for section, _ in entries()] == ["contenders", "contenders", "grounds"]


def test_the_files_keep_the_rules_of_the_project(tmp_path):
    import style_checks as style

    for name, code in modules().items():
        place = Path(name).relative_to("src/clustered_fl")
        complaints = style.length(code) + style.documentation(code) + style.direction(place, code)
        assert complaints == [], name


def test_the_entries_fit_the_committed_ledger():
    """Anchors that they use are there, and no name is taken."""
    before = yaml.safe_load((ROOT / "config" / "papers" / "ground.yaml").read_text())
    after = appended((ROOT / "config" / "papers" / "ground.yaml").read_text())
    for section, new in {"grounds": ["negative"], "contenders": list(CONTENDERS[1:])}.items():
        assert list(after[section]) == [*before[section], *new]


def test_one_file_and_one_entry_are_planned_as_runs(extended):
    plan = extended.plan(*PLAN)
    assert subjects(plan, "train") == {f"ground_negative_{name} 0" for name in CONTENDERS}
    assert subjects(plan, "grouping") == {"ground_groups_negative_mean_image 0"}
    assert subjects(plan, "partition") == {"ground_negative_fedavg 0"}


@pytest.fixture(scope="module")
def matrix(extended) -> pd.DataFrame:
    """The matrix that the copy makes."""
    extended.make(*PLAN)
    return pd.read_csv(extended.root / MATRIX).set_index("contender")


def test_they_get_a_row_in_the_matrix(matrix):
    assert list(matrix.index) == list(CONTENDERS)
    assert set(matrix["ground"]) == {"negative"}
    assert matrix[["accuracy", "gain", "worst", "megabytes", "seconds"]].notna().all(axis=None)


def test_the_clustering_of_the_page_tells_negatives_apart(matrix):
    assert matrix.loc["mean_image", ["agreement", "groups"]].tolist() == [1, 2]
    assert matrix.loc["fedavg", ["agreement", "groups"]].tolist() == [0, 1]


def test_the_method_of_the_page_ends_with_everybody_alone(matrix):
    assert matrix.loc["then_alone", "groups"] == 12


def test_a_further_entry_leaves_what_was_trained_alone(extended, matrix):
    path = extended.root / "config" / "papers" / "ground.yaml"
    ledger = yaml.safe_load(path.read_text())
    one_more = {"title": "Local", "citation": "-", "method": {"name": "local"}}
    ledger["contenders"] |= {"local": one_more}
    path.write_text(yaml.safe_dump(ledger, sort_keys=False))
    plan = extended.plan(*PLAN)
    assert subjects(plan, "train") == {"ground_negative_local 0"}
    assert {job.rule for job in plan} == {"train", "figure", "ground_matrix"}
