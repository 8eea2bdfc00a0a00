"""The committed workflow and ledgers, as far as nothing needs to run: targets, lint, plan."""

import re
from itertools import chain

import yaml

from clustered_fl.ledger.settings import Settings
from clustered_fl.workflow.federations import key_of
from clustered_fl.workflow.plan import Plan
from workflow.small_project import ROOT, rules, subjects

# The copy of the project has no figures/, so that nothing is restored there.
PLAN = Plan(Settings(archive=False), ROOT / "config" / "papers")
RUNS, GROUPINGS = PLAN.run.entries, PLAN.grouping.entries


def records(entries: dict) -> int:
    """How many records they leave."""
    return sum(len(entry.seeds) for entry in entries.values())


def test_lint_has_nothing_to_say(whole_project):
    code, text = whole_project.snakemake("--lint")
    assert code == 0, text
    assert "Congratulations" in text


def test_every_paper_and_artefact_is_a_target(whole_project):
    code, text = whole_project.snakemake("--list-rules")
    assert code == 0, text
    listed = set(text.split())
    assert {"all", *PLAN.ledgers, "publish", "archive", "pages", *PLAN.artefacts.entries} <= listed
    working = {"dataset", "partition", "train", "figure", "table", "verdicts"}
    working |= {f"study_{name}" for name in PLAN.study.entries}
    assert working | {"test_results", "report_site", "restore_run"} <= listed


def test_plan_of_everything_has_every_job_once(whole_project):
    code, text = whole_project.snakemake("--dry-run", "--quiet", "rules")
    assert code == 0, text
    counts = {name: int(count) for name, count in re.findall(r"^(\w+) +(\d+)$", text, re.MULTILINE)}
    for kind in ("figure", "table"):
        assert counts[kind] == len(PLAN.artefacts.named(kind).split("|"))
    assert {counts[f"study_{name}"] for name in PLAN.study.entries} == {1}
    assert counts["train"] == records(RUNS)
    assert counts["grouping"] == records(GROUPINGS)
    assert counts["encoder"] == records(PLAN.encoder.entries)
    trained = [*RUNS.values(), *GROUPINGS.values()]
    clients = {(key_of(entry.config), seed) for entry in trained for seed in entry.seeds}
    assert counts["partition"] == len(clients)
    used = chain(trained, PLAN.encoder.entries.values())
    assert counts["dataset"] == len({entry.config["dataset"] for entry in used if entry.seeds})
    assert not [name for name in counts if name.startswith("restore")]


def test_plan_of_one_artefact_has_just_its_runs(whole_project):
    plan = whole_project.plan("cfl_fig8")
    names = ("cfl_fig8_congruent", "cfl_fig8_incongruent")
    assert subjects(plan, "train") == {f"{name} 0" for name in names}
    assert subjects(plan, "partition") == {f"{key_of(RUNS[name].config)} 0" for name in names}
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
    assert "output: data/real/cifar10.safetensors" in text
    assert "output: results/desktop/federations/label_permutation_" in text
    assert "results/demo" not in text


# ---- Profiles -----------------------------------------------------------------------------------


def profile(name: str) -> dict:
    return yaml.safe_load((ROOT / "profiles" / name / "config.yaml").read_text())


def test_a_cluster_reruns_what_one_machine_reruns():
    here, there = profile("default"), profile("slurm")
    shared = here.keys() & there.keys() - {"cores"}
    assert {key: here[key] for key in shared} == {key: there[key] for key in shared}
    assert here.keys() - shared == {"cores"}
    # Not `software-env`: a pin that changes would retrain everything under conda.
    assert here["rerun-triggers"] == ["mtime", "params"]


def test_jobs_that_share_one_on_a_cluster_are_those_of_the_rules():
    """Snakemake ignores the size of a group that no rule has."""
    rules = "".join(path.read_text() for path in (ROOT / "workflow" / "rules").iterdir())
    named = {*re.findall(r'PLAN\.sharing\("(\w+)"\)', rules), "profilers", "groupings", "runs"}
    assert {each.partition("=")[0] for each in profile("slurm")["group-components"]} == named
