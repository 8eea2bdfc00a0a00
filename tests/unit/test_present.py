"""What a finished job asks for: nothing that is gone, unless it runs again."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from tiny_ledger import SMALL, write

from clustered_fl.files import write_json
from clustered_fl.ledger.settings import Settings
from clustered_fl.records.archive import LEARNT, MARK, Key
from clustered_fl.workflow.kinds import FILES
from clustered_fl.workflow.plan import Plan
from clustered_fl.workflow.present import forced

DATA = "data/builtin/mnist.safetensors"
RUN, CODE, GROUPS = Key("run", "one", 0), Key("encoder", "code", 0), Key("grouping", "groups", 0)


def of(key: Key) -> SimpleNamespace:
    return SimpleNamespace(name=key.name, seed=key.seed)


@pytest.fixture
def planned(tmp_path, monkeypatch):
    """The plan in a folder with finished records of a run, an encoder and a grouping."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path, SMALL)

    def planned(*again: str) -> Plan:
        return Plan(Settings(archive=False), tmp_path, forced=lambda: again)

    plan = planned()
    for key in (RUN, CODE, GROUPS):
        for name in (*FILES[key.kind], *([LEARNT[key.kind]] if key.kind in LEARNT else [])):
            folder(plan, key).mkdir(parents=True, exist_ok=True)
            (folder(plan, key) / name).touch()
        write_json(folder(plan, key) / "record.json", {"identity": plan.identity(of(key))})
    return planned


def folder(plan: Plan, key: Key) -> Path:
    (kind,) = (kind for kind in plan.kinds if kind.name == key.kind)
    return Path(kind.folder(key.name, key.seed))


def test_a_finished_job_asks_for_no_data_that_were_deleted(planned):
    assert planned().dataset(of(RUN)) == planned().federation(of(RUN)) == []


@pytest.mark.parametrize("name", ["cost.json", "rounds.parquet"])
def test_a_run_that_lacks_a_file_asks_for_its_data(planned, name):
    (folder(planned(), RUN) / name).unlink()
    assert planned().dataset(of(RUN)) == [DATA]
    assert len(planned().federation(of(RUN))) == 1


def test_models_that_no_grouping_reads_may_be_missing(planned):
    (folder(planned(), RUN) / LEARNT["run"]).unlink()
    assert planned().dataset(of(RUN)) == []


def test_a_restored_encoder_that_a_new_grouping_reads_asks_for_its_data(planned):
    plan = planned()
    (folder(plan, CODE) / LEARNT["encoder"]).unlink()
    (folder(plan, CODE) / MARK).touch()
    assert len(plan.dataset(of(CODE))) == 1  # the second seed of the grouping is not there
    for seed in (0, 1):
        key = GROUPS._replace(seed=seed)
        write_json(folder(plan, key) / "record.json", {"identity": plan.identity(of(key))})
    assert planned().dataset(of(CODE)) == []


def test_a_finished_job_rests_on_no_files(planned):
    plan = planned()
    assert plan.below_files(of(GROUPS)) == []
    (folder(plan, GROUPS) / "comparisons.parquet").unlink()
    code = folder(plan, CODE)
    needed = [f"{code}/record.json", f"{code}/encoder.safetensors"]
    assert planned().below_files(of(GROUPS)) == needed


@pytest.mark.parametrize(
    ("again", "runs"),
    [
        ("train", {RUN}),
        ("results/demo/runs/one/seed0/rounds.parquet", {RUN}),
        ("grouping", {GROUPS}),
        ("encoder", {CODE, GROUPS}),
        ("results/demo/runs/one/seed1/record.json", set()),
        ("figure", set()),
        ("dataset", set()),
    ],
)
def test_a_job_that_is_forced_asks_for_its_data_as_does_what_rests_on_it(planned, again, runs):
    plan = planned(again)
    assert {key for key in (RUN, GROUPS, CODE) if plan.dataset(of(key))} == runs


def test_snakemake_is_asked_by_three_options():
    def asked(**options) -> set[str]:
        given = {"forcerun": set(), "forceall": False, "forcetargets": False, "targets": {"x/y"}}
        return forced(SimpleNamespace(**given | options))

    assert asked() == set()
    assert asked(forcerun={"train"}) == {"train"}
    assert asked(forcetargets=True) == {"x/y"}
    assert asked(forceall=True) == {"train", "grouping", "encoder"}
