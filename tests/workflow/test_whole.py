"""The committed workflow and ledgers, as far as nothing needs to run: targets, lint, plan."""

import re

from clustered_fl.ledger import load_ledger, resolved_groupings, resolved_runs
from clustered_fl.same_ground import shown
from workflow.small_project import ROOT, rules, subjects

PAPERS = ("cfl", "flt", "repa", "ground")
LEDGERS = [load_ledger(ROOT / "config" / "papers" / f"{paper}.yaml") for paper in PAPERS]
ARTEFACTS = {n: entry for ledger in LEDGERS for n, entry in shown(ledger, "demo").items()}
RUNS = {name: run for ledger in LEDGERS for name, run in resolved_runs(ledger, "demo").items()}
GROUPINGS = {
    name: grouping
    for ledger in LEDGERS
    for name, grouping in resolved_groupings(ledger, "demo").items()
}


def seeds(entries: dict[str, dict]) -> int:
    """How many records they leave."""
    return sum(len(entry["seeds"]) for entry in entries.values())


def on_grounds(entries: dict[str, dict]) -> dict[str, dict]:
    """Those whose clients belong to a ground, one file for all contenders."""
    return {name: entry for name, entry in entries.items() if name.startswith("ground_")}


def test_lint_has_nothing_to_say(whole_project):
    code, text = whole_project.snakemake("--lint")
    assert code == 0, text
    assert "Congratulations" in text


def test_every_paper_and_artefact_is_a_target(whole_project):
    code, text = whole_project.snakemake("--list-rules")
    assert code == 0, text
    listed = set(text.split())
    assert {"all", *PAPERS, "publish", *ARTEFACTS} <= listed
    working = {"dataset", "partition", "train", "study", "figure", "table", "verdicts"}
    assert working | {"test_results", "report_site"} <= listed


def test_plan_of_everything_has_every_job_once(whole_project):
    _, text = whole_project.snakemake("--dry-run", "--quiet", "rules")
    counts = {name: int(count) for name, count in re.findall(r"^(\w+) +(\d+)$", text, re.MULTILINE)}
    figures = sum(artefact.kind == "figure" for artefact in ARTEFACTS.values())
    assert counts["figure"] == figures
    assert counts["table"] == len(ARTEFACTS) - figures
    assert counts["study"] == sum(len(ledger.studies) for ledger in LEDGERS)
    assert counts["train"] == seeds(RUNS)
    assert counts["grouping"] == seeds(GROUPINGS)
    shared = seeds(on_grounds(RUNS)) + seeds(on_grounds(GROUPINGS))
    grounds = {
        (ground, seed)
        for ground, about in LEDGERS[-1].grounds.items()
        for seed in {*about.seeds.get("demo", []), *about.grouping_seeds.get("demo", [])}
    }
    assert counts["partition"] == seeds(RUNS) + seeds(GROUPINGS) - shared + len(grounds)
    assert counts["encoder"] == sum(len(ledger.encoders) for ledger in LEDGERS)
    used = {entry.dataset for ledger in LEDGERS for entry in ledger.encoders.values()}
    used |= {e["config"]["dataset"] for e in (*RUNS.values(), *GROUPINGS.values()) if e["seeds"]}
    assert counts["dataset"] == len(used)


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
