"""Nothing runs again that cannot change a number, and nothing finished is lost before it does."""

import shutil
from collections.abc import Iterator

import pytest
import yaml

from clustered_fl.data import dataset as datasets
from clustered_fl.data.dataset import with_images
from workflow.small_project import LEDGER, Project, rules, subjects

DATA = "data/builtin/mnist.safetensors"
RECORD = "results/demo/runs/cfl_fig9/seed0/record.json"
STUDY = "results/demo/studies/cfl_violations/seed0/record.json"


@pytest.fixture(scope="module")
def complete(tmp_path_factory) -> Project:
    """A copy of its own, because these tests change data and records."""
    project = Project(tmp_path_factory.mktemp("reruns") / "project")
    project.use_small_ledger()
    project.make()
    return project


@pytest.fixture
def data(complete) -> Iterator[object]:
    """The data's file, which is as before after the test."""
    path = complete.root / DATA
    content = path.read_bytes()
    yield path
    path.write_bytes(content)


@pytest.mark.parametrize(
    "config",
    [["mirror=."], ["mirror=./"], ["device=cpu"], ["path=sequential"], ["archive=false"]],
    ids=" ".join,
)
def test_configuration_that_changes_no_number_reruns_nothing(complete, config):
    assert complete.plan("--config", *config) == set()


def test_a_further_paper_redraws_nothing_of_the_others(complete):
    about = {name: LEDGER[name] for name in ("title", "authors", "year", "versions")}
    other = complete.ledger.with_name("other.yaml")
    other.write_text(yaml.safe_dump({"paper": "other", "artefacts": {}, "claims": {}} | about))
    try:
        found = rules(complete.plan())
    finally:
        other.unlink()
    assert "verdicts" in found
    assert not found & {"figure", "table"}


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("config/datasets.yaml", "\nmnist:\n", "\n# A comment.\nmnist:\n"),
        ("src/clustered_fl/data/download.py", "ATTEMPTS = 3", "ATTEMPTS = 4"),
    ],
    ids=["comment", "retries"],
)
def test_edits_that_change_no_data_rerun_nothing(complete, name, old, new):
    with complete.edited(name, old, new):
        assert complete.plan() == set()


def test_the_entry_of_another_dataset_reruns_nothing(complete):
    path = complete.root / "config" / "datasets.yaml"
    before = path.read_text()
    table = yaml.safe_load(before)
    table["emnist"]["rows"]["train"] += 1
    path.write_text(yaml.safe_dump(table))
    try:
        assert complete.plan() == set()
    finally:
        path.write_text(before)


def test_data_made_again_touch_no_training(complete):
    assert "train" not in rules(complete.plan("--forcerun", "dataset"))


def test_without_data_only_what_is_new_is_computed(complete, data):
    data.unlink()
    assert complete.plan() == set()
    with complete.changed_ledger("runs/cfl_fig9_fedavg/seeds", {"demo": [0, 1]}):
        plan = complete.plan()
    assert subjects(plan, "train") == {"cfl_fig9_fedavg 1"}
    assert subjects(plan, "dataset") == {"mnist"}


def test_a_dataset_is_replaced_by_making_it_by_name(complete, data):
    """As docs/running.md says of a more complete mirror."""
    data.unlink()
    more = ('"digits": StandIn(digits, (6000, 1000)', '"digits": StandIn(digits, (6000, 1100)')
    with complete.edited("src/clustered_fl/data/builtin.py", *more):
        assert "train" not in rules(complete.plan())
        complete.make(DATA)
        plan = complete.plan()
    assert subjects(plan, "train") == {"cfl_fig9 0", "cfl_fig9_fedavg 0"}
    complete.make(DATA)
    assert complete.plan() == set()


def test_other_data_are_a_reason_once(complete, data):
    known = datasets.load(data)
    datasets.save(with_images(known, known.x // 2, ""), data)
    assert subjects(complete.plan(), "train") == {"cfl_fig9 0", "cfl_fig9_fedavg 0"}
    complete.make()
    assert complete.plan() == set()
    datasets.save(known, data)
    complete.make()
    assert complete.plan() == set()


def test_data_stay_when_they_cannot_be_fetched_again(complete, data):
    before = data.read_bytes()
    with complete.edited("src/clustered_fl/files.py", "        beside.touch()", "        1 / 0\n"):
        code, _ = complete.snakemake("--cores", "1", "--forcerun", "dataset", "--", DATA)
    assert code == 1
    assert data.read_bytes() == before


def test_a_run_that_lacks_a_file_is_made_again_with_its_data(complete, data):
    path = complete.root / RECORD
    rounds = path.with_name("rounds.parquet")
    before = path.read_bytes(), rounds.read_bytes()
    data.unlink()
    rounds.unlink()
    complete.make(str(rounds.relative_to(complete.root)))
    assert (path.read_bytes(), rounds.read_bytes()) == before
    data.unlink()
    complete.make("--force", RECORD)
    assert path.read_bytes() == before[0]


def test_a_record_stays_until_the_new_one_is_whole(complete):
    before = (complete.root / RECORD).read_bytes()
    again = ("--cores", "1", "--forcerun", "train")
    with complete.edited("src/clustered_fl/files.py", "        beside.touch()", "        1 / 0\n"):
        _, text = complete.snakemake(*again)
    assert "ZeroDivisionError" in text, text
    assert (complete.root / RECORD).read_bytes() == before
    _, text = complete.snakemake(*again, "--config", "device=cuda")
    assert "error: device=cuda needs a CUDA GPU, and this machine has none" in text, text
    assert (complete.root / RECORD).read_bytes() == before


def test_records_of_other_code_are_refused_where_snakemake_has_forgotten_them(complete):
    """Without .snakemake it knows no parameters, and would take them for those of today."""
    shutil.rmtree(complete.root / ".snakemake")
    assert "train" not in rules(complete.plan())
    with complete.edited("src/clustered_fl/methods/cfl.py", "mean < eps_1", "mean <= eps_1"):
        code, text = complete.snakemake("--dry-run")
        assert code != 0, text
        assert "was made with other settings or code" in text, text
        named = ["--forcerun", RECORD, RECORD.replace("fig9", "fig9_fedavg")]
        assert subjects(complete.plan(*named), "train")


@pytest.mark.parametrize(
    "again",
    [["--forceall"], ["--forcerun", "study_cfl_violations"], ["--forcerun", STUDY]],
    ids=["everything", "rule", "file"],
)
def test_a_study_of_other_code_that_snakemake_has_forgotten_is_made_again(complete, again):
    """`--force` with an artefact's name forces no study, so the refusal says what does."""
    shutil.rmtree(complete.root / ".snakemake")
    with complete.edited("src/clustered_fl/theory/cfl/violations.py", "C=1e3", "C=1e4"):
        code, text = complete.snakemake("--dry-run", "--force", "cfl_fig1")
        assert code != 0, text
        assert f"make it again with `--forcerun {STUDY}`" in text, text
        assert "study_cfl_violations" in rules(complete.plan("cfl_fig1", *again))
