"""The committed workflow and ledgers, as far as nothing needs to run: targets, lint, plan."""

import re

from clustered_fl.ledger import load_ledger
from workflow.small_project import ROOT, rules, subjects

LEDGER = load_ledger(ROOT / "config" / "papers" / "cfl.yaml")


def test_lint_has_nothing_to_say(whole_project):
    code, text = whole_project.snakemake("--lint")
    assert code == 0, text
    assert "Congratulations" in text


def test_every_paper_and_artefact_is_a_target(whole_project):
    code, text = whole_project.snakemake("--list-rules")
    assert code == 0, text
    listed = set(text.split())
    assert {"all", "cfl", "publish", *LEDGER.artefacts} <= listed
    working = {"dataset", "partition", "train", "study", "figure", "table", "verdicts"}
    assert working | {"test_results", "report_site"} <= listed


def test_plan_of_everything_has_every_job_once(whole_project):
    _, text = whole_project.snakemake("--dry-run", "--quiet", "rules")
    counts = {name: int(count) for name, count in re.findall(r"^(\w+) +(\d+)$", text, re.MULTILINE)}
    figures = sum(artefact.kind == "figure" for artefact in LEDGER.artefacts.values())
    assert counts["figure"] == figures
    assert counts["table"] == len(LEDGER.artefacts) - figures
    assert counts["study"] == len(LEDGER.studies)
    seeds = sum(
        len(run.seeds.get("demo", [])) * (len(run.sweep.values["demo"]) if run.sweep else 1)
        for run in LEDGER.runs.values()
    )
    assert counts["train"] == counts["partition"] == seeds
    assert counts["dataset"] == len({run.dataset for run in LEDGER.runs.values()})


def test_plan_of_one_artefact_has_just_its_runs(whole_project):
    plan = whole_project.plan("cfl_fig8")
    expected = {"cfl_fig8_congruent 0", "cfl_fig8_incongruent 0"}
    assert subjects(plan, "train") == subjects(plan, "partition") == expected
    assert subjects(plan, "dataset") == {"mnist"}
    assert subjects(plan, "figure") == {"cfl_fig8"}
    assert rules(plan) == {"train", "partition", "dataset", "figure", "cfl_fig8"}


def test_scales_lie_side_by_side(whole_project):
    """A mirror is only read by the job that verifies a dataset, so an empty folder makes a plan."""
    mirror = whole_project.root / "mirror"
    mirror.mkdir()
    code, text = whole_project.snakemake(
        "--dry-run", "cfl_fig9", "--config", "scale=desktop", f"mirror={mirror}"
    )
    assert code == 0, text
    assert "output: data/mirror/cifar10.safetensors" in text
    assert "output: results/desktop/federations/cfl_fig9/seed0.safetensors" in text
    assert "results/demo" not in text
