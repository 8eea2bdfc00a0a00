"""The workflow as a module of another one, in a folder of its user.

The package is not installed for the user's Snakemake: the module finds it, as it finds everything
that the user has not.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from workflow.small_project import LEDGER, Project, rules, subjects

MODULE = """
module clustered_fl:
    snakefile: "{snakefile}"
    config: {config}
{prefix}

use rule * from clustered_fl
"""
MADE = {"results", "data", "logs", "figures"}


class Deployed(Project):
    """A folder with a Snakefile that uses the module, and nothing else.

    Attributes:
        prefix: of what is made.
    """

    def __init__(self, root: Path, of: Project, prefix: str = "") -> None:
        self.root, self.of, self.prefix = root, of, prefix
        root.mkdir()
        self.use({})

    def use(self, *configs: dict) -> None:
        """Write the Snakefile: the module, once for each configuration."""
        prefix = f'    prefix: "{self.prefix}"' if self.prefix else ""
        snakefile = self.of.root / "workflow" / "Snakefile"
        parts = (MODULE.format(snakefile=snakefile, config=each, prefix=prefix) for each in configs)
        (self.root / "Snakefile").write_text("".join(parts))

    def start(self, *arguments: str) -> subprocess.Popen:
        """Start Snakemake as its user does, without a word about the package."""
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        command = ["snakemake", *arguments]
        return subprocess.Popen(command, cwd=self.root, env=environment, **streams)

    def all_files(self) -> set[str]:
        """Everything in the folder that Snakemake does not keep for itself."""
        paths = (path.relative_to(self.root) for path in self.root.rglob("*") if path.is_file())
        return {str(path) for path in paths if path.parts[0] != ".snakemake"}


@pytest.fixture(scope="module")
def repository(tmp_path_factory) -> Project:
    """A copy of the project whose package can be told from the one that is installed."""
    repository = Project(tmp_path_factory.mktemp("deploy") / "repository")
    repository.use_small_ledger()
    path = repository.package / "cli.py"
    path.write_text(path.read_text().replace("claims and", "claims, says the copy, and"))
    return repository


@pytest.fixture(scope="module")
def whole(repository, tmp_path_factory) -> Deployed:
    """A folder, with a prefix, after everything was made and the finished records were kept."""
    whole = Deployed(tmp_path_factory.mktemp("whole") / "mine", repository, "cfl/")
    whole.make()
    whole.make("archive")
    return whole


@pytest.mark.parametrize("prefix", ["", "cfl/"])
def test_everything_is_planned(repository, tmp_path, prefix):
    plan = Deployed(tmp_path / "mine", repository, prefix).plan()
    assert subjects(plan, "train") == {"cfl_fig9 0", "cfl_fig9_fedavg 0"}
    assert subjects(plan, "figure") | subjects(plan, "table") == LEDGER["artefacts"].keys()


def test_without_prefix_a_figure_is_made_in_the_folder_of_the_user(repository, tmp_path):
    mine = Deployed(tmp_path / "mine", repository)
    mine.make("cfl_fig1")
    assert {Path(name).parts[0] for name in mine.all_files()} == {"Snakefile", "results", "logs"}
    assert (mine.root / "results/demo/artefacts/cfl_fig1/cfl_fig1.png").exists()
    assert mine.plan("cfl_fig1") == set()


def test_everything_is_made_in_the_folder_of_the_user(whole, repository):
    made = {Path(name).relative_to("cfl") for name in whole.all_files() - {"Snakefile"}}
    assert {path.parts[0] for path in made} == MADE
    pages = {Path("results/demo/report", name) for name in ("index.html", "cfl/index.html")}
    assert pages | {Path("data/builtin/mnist.safetensors")} <= made
    there = {path.name for path in repository.root.iterdir()}
    assert there & {*MADE, ".snakemake"} == set()


def test_its_jobs_run_the_package_of_the_module(whole):
    log = whole.root / "cfl/logs/demo/test_results.log"
    assert log.read_text().startswith("2 claims, says the copy, and 3 artefacts pass their tests")


def test_nothing_runs_twice(whole):
    assert whole.plan() == set()
    assert rules(whole.plan("--forcerun", "dataset")) == {"dataset", "partition"}


def test_pages_are_written_in_the_folder_of_the_user(whole):
    whole.make("publish")
    page = whole.root / "cfl/figures/demo/cfl/README.md"
    before = page.read_bytes()
    page.unlink()
    whole.make("pages")
    assert page.read_bytes() == before
    assert not (whole.root / "figures").exists()


def test_what_the_user_has_published_is_taken(whole, repository, tmp_path):
    again = Deployed(tmp_path / "again", repository, "cfl/")
    (again.root / "cfl").mkdir()
    (again.root / "cfl/figures").symlink_to(whole.root / "cfl/figures")
    assert rules(again.plan("cfl_fig4")) == {"restore_run", "figure", "cfl_fig4"}
    again.make("cfl/results/demo/runs/cfl_fig9/seed0/record.json")
    assert rules(again.plan("cfl_fig4")) == {"figure", "cfl_fig4"}


def test_what_the_repository_has_published_is_taken(whole, repository, tmp_path):
    figures = repository.root / "figures"
    figures.symlink_to(whole.root / "cfl/figures")
    try:
        plan = Deployed(tmp_path / "mine", repository).plan("cfl_fig4")
    finally:
        figures.unlink()
    assert rules(plan) == {"restore_run", "figure", "cfl_fig4"}


def test_the_ledgers_and_notebooks_of_the_user_come_first(repository, tmp_path):
    mine = Deployed(tmp_path / "mine", repository, "cfl/")
    artefact = LEDGER["artefacts"]["cfl_fig1"] | {"notebook": "my_own.ipynb"}
    ledger = LEDGER | {"artefacts": {"my_fig": artefact}, "claims": {}}
    for name in ("config/papers/cfl.yaml", "notebooks/my_own.ipynb"):
        (mine.root / name).parent.mkdir(parents=True)
    (mine.root / "config/papers/cfl.yaml").write_text(json.dumps(ledger))
    source = repository.root / "notebooks/cfl/violations.ipynb"
    own = shutil.copy(source, mine.root / "notebooks/my_own.ipynb")
    code, text = mine.snakemake("--dry-run", "my_fig")
    assert code == 0, text
    assert str(own) in text


def test_two_modules_that_differ_are_refused(repository, tmp_path):
    """The second would overwrite what the jobs of the first are told."""
    mine = Deployed(tmp_path / "mine", repository)
    mine.use({}, {"seeds": 1})
    code, text = mine.snakemake("--dry-run")
    assert code == 2
    assert text.strip().splitlines()[-1].startswith("error: two modules differ in configuration")
