"""Which published records a plan takes: those that it would compute to the same result."""

import json
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from tiny_ledger import SMALL, changed, write

from clustered_fl.data import dataset as datasets
from clustered_fl.errors import InputError
from clustered_fl.files import write_json
from clustered_fl.ledger.settings import Settings
from clustered_fl.records import archive
from clustered_fl.records.archive import MARK, Key, Packed
from clustered_fl.workflow import kinds
from clustered_fl.workflow.places import HERE
from clustered_fl.workflow.plan import Plan, recovered

ARCHIVE = Path("figures/demo/small/records.parquet")
RUNS = {Key("run", name, seed) for name in ("one", "network", "clustered") for seed in (0, 1)}
GROUPINGS = {Key("grouping", name, seed) for name in ("groups", "profiled") for seed in (0, 1)}
EVERY = RUNS | GROUPINGS | {Key("encoder", "code", 0), Key("study", "toy", 0)}
MNIST = Path("data/builtin/mnist.safetensors")


@pytest.fixture
def planned(tmp_path, monkeypatch):
    """The plan of a ledger in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def planned(ledger: dict = SMALL, **settings) -> Plan:
        write(tmp_path, ledger)
        return Plan(Settings(**settings), tmp_path)

    return planned


def of(key: Key) -> SimpleNamespace:
    return SimpleNamespace(name=key.name, seed=key.seed)


def record(plan: Plan, key: Key, data: str = "") -> Packed:
    """A record as the plan would compute it."""
    content = {"identity": plan.identity(of(key)), "data": {"digest": data}}
    files = {"record.json": json.dumps(content).encode()}
    return Packed(key.kind, key.name, key.name, key.seed, content["identity"], data, "v1", files)


@pytest.fixture
def published(planned) -> dict[Key, Packed]:
    """An archive with everything that the small ledger computes."""
    plan = planned()
    records = {key: record(plan, key) for key in EVERY}
    archive.write(ARCHIVE, records.values())
    return records


def without(name: str) -> set[Key]:
    return {key for key in EVERY if key.name != name}


# ---- What fits -----------------------------------------------------------------------------------


def test_nothing_is_taken_where_nothing_is_published(planned):
    archives = planned().archives
    assert (archives.taken, archives.told()) == (set(), "")


def test_everything_that_was_computed_alike_is_taken(planned, published):
    archives = planned().archives
    assert archives.taken == EVERY
    assert archives.told() == f"{len(EVERY)} published records are used instead of computed."


def test_an_interrupted_publication_hides_no_record(planned, published):
    Path("figures/demo").replace("figures/.demo.former")
    recovered(Settings(archive=False), HERE)
    assert not ARCHIVE.exists()
    recovered(Settings(), HERE)
    assert planned().archives.taken == EVERY


def test_a_plan_moves_no_folder(planned, published):
    """It is made by every dry run and job too, while another process may publish."""
    Path("figures/demo").replace("figures/.demo.former")
    assert planned().archives.taken == set()
    assert Path("figures/.demo.former").exists()


def test_nothing_is_taken_if_everything_is_to_be_computed_here(planned, published):
    assert planned(archive=False).archives.taken == set()


@pytest.mark.parametrize(
    ("place", "value", "stale"),
    [
        ("runs/one/rounds", 6, {"one"}),
        ("runs/one/model/name", "le_net", {"one"}),
        ("runs/one/purpose", "something else", set()),
        ("runs/one/minutes", {"demo": 99}, set()),
        ("groupings/groups/method/clusters", 3, {"code", "groups", "clustered"}),
        ("encoders/code/training/epochs", 2, {"code", "groups", "clustered"}),
        ("runs/network/rounds", 6, {"network", "profiled"}),
        ("studies/toy/settings", {"spread": 2.0}, {"toy"}),
    ],
)
def test_what_was_computed_with_other_settings_is_not_taken(
    planned, published, place, value, stale
):
    """Nor what rests on it."""
    archives = planned(changed(place, value)).archives
    assert archives.taken == {key for key in EVERY if key.name not in stale}


def test_what_was_computed_by_other_code_is_not_taken(planned, published, monkeypatch):
    def other(*entries: str) -> str:
        return "other" if "clustered_fl.jobs.encode:execute" in entries else known(*entries)

    known = kinds.of_code
    monkeypatch.setattr(kinds, "of_code", other)
    stale = {"code", "groups", "clustered"}
    assert planned().archives.taken == {key for key in EVERY if key.name not in stale}


def test_clients_made_by_other_code_make_other_records(planned, published, monkeypatch):
    monkeypatch.setattr("clustered_fl.workflow.entries.code_of", lambda config: "other")
    assert {key.kind for key in planned().archives.taken} == {"study"}  # groupings need the encoder


def test_a_record_of_a_seed_or_an_entry_that_is_not_asked_for_stays_where_it_is(planned, published):
    archives = planned(seeds=1).archives
    assert archives.taken == {key for key in EVERY if key.seed == 0}
    runs = {name: run for name, run in SMALL["runs"].items() if name != "one"}
    figure = SMALL["artefacts"]["small_fig"] | {"runs": []}
    ledger = SMALL | {"runs": runs, "artefacts": {"small_fig": figure}, "claims": {}}
    assert planned(ledger).archives.taken == without("one")


def test_seeds_that_are_not_asked_for_are_not_named(planned, published):
    assert "Not used" not in planned(seeds=1).archives.told()


def test_the_user_is_told_what_is_not_taken(planned, published):
    text = planned(changed("runs/one/rounds", 6)).archives.told()
    rest = "Not used, because settings, code or data differ: one (seed 0), one (seed 1)."
    assert text.startswith(f"{len(EVERY) - 2} published records are used ")
    assert text.endswith(rest)
    archive.write(ARCHIVE, [published[key]._replace(identity="") for key in EVERY])
    assert planned().archives.told().endswith(f" and {len(EVERY) - 8} more.")


def test_a_record_that_is_too_old_to_say_what_it_is_is_not_taken(planned, published):
    key = Key("run", "one", 0)
    archive.write(ARCHIVE, [published[key]._replace(identity="")])
    assert planned().archives.taken == set()


def test_a_damaged_archive_is_one_sentence(planned, published):
    ARCHIVE.write_bytes(ARCHIVE.read_bytes()[:100])
    with pytest.raises(InputError, match="cannot read figures/demo/small/records.parquet: "):
        planned()


def test_a_record_of_stand_ins_is_not_taken_for_one_of_real_data(planned, published):
    """Also where no data are at hand to be compared."""
    assert planned(source="download").archives.taken == {Key("study", "toy", 0)}


# ---- Data ----------------------------------------------------------------------------------------


def digest_at_hand() -> str:
    """Prepare a dataset; its digest."""
    x = np.random.default_rng(0).integers(0, 256, (20, 1, 28, 28), dtype=np.uint8)
    labels = tuple("0123456789")
    data = datasets.build("mnist", "builtin", x, np.arange(20) % 10, 10, labels)
    datasets.save(data, MNIST)
    return data.digest


def test_a_record_of_other_data_than_those_at_hand_is_not_taken(planned, published):
    key, digest = Key("run", "one", 0), digest_at_hand()
    other = Key("run", "one", 1)
    plan = planned()
    archive.write(ARCHIVE, [record(plan, key, digest), record(plan, other, "of other data")])
    assert planned().archives.taken == {key}
    MNIST.unlink()
    assert planned().archives.taken == {key, other}


# ---- What is here already ------------------------------------------------------------------------


def compute(key: Key, plan: Plan, identity: str | None = None) -> Path:
    """Leave a record as a job does."""
    (kind,) = (kind for kind in plan.kinds if kind.name == key.kind)
    folder = Path(kind.folder(key.name, key.seed))
    write_json(folder / "record.json", {"identity": identity or plan.identity(of(key))})
    return folder


def test_what_was_computed_here_stays(planned, published):
    key = Key("run", "one", 1)
    folder = compute(key, planned())
    assert planned().archives.taken == EVERY - {key}
    (folder / MARK).write_text("")
    assert planned().archives.taken == EVERY


def test_what_was_computed_here_with_other_settings_is_replaced(planned, published):
    compute(Key("run", "one", 1), planned(), identity="of other settings")
    assert planned().archives.taken == EVERY


def test_what_was_computed_here_and_is_up_to_date_is_finished(planned):
    plan = planned()
    compute(Key("run", "one", 1), plan)
    compute(Key("run", "clustered", 1), plan, identity="of other settings")
    (compute(Key("study", "toy", 0), plan) / MARK).write_text("")
    found = planned().finished()
    assert [(row.kind, row.name, row.seed) for row in found.itertuples()] == [("run", "one", 1)]


# ---- What networks have learnt -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("grouping", "below"),
    [("profiled", Key("run", "network", 1)), ("groups", Key("encoder", "code", 0))],
)
def test_the_network_of_a_grouping_to_be_computed_is_trained(planned, published, grouping, below):
    """What networks have learnt is in no archive."""
    missing = Key("grouping", grouping, 1)
    archive.write(ARCHIVE, [each for key, each in published.items() if key != missing])
    assert planned().archives.taken == EVERY - {missing, below}
    compute(missing, planned())
    (compute(below, planned()) / MARK).touch()
    assert planned().archives.taken == EVERY - {missing}


def test_no_record_has_two_jobs(planned, published):
    """An encoder that was set aside as damaged is not restored beside a job that trains it."""
    grouping, encoder = Key("grouping", "groups", 1), Key("encoder", "code", 0)
    compute(grouping, planned())
    assert planned().archives.taken == EVERY - {grouping, encoder}
    compute(encoder, planned())
    assert planned().archives.taken == EVERY - {grouping, encoder}


# ---- Only what is finished -----------------------------------------------------------------------


def known(plan: Plan) -> set[Key]:
    """Keys of the records of a plan."""
    return {Key(row.kind, row.name, row.seed) for row in plan.records().itertuples()}


def test_everything_is_finished_where_everything_is_published(planned, published):
    plan = planned(finished=True)
    assert plan.archives.taken == known(plan) == EVERY
    assert list(plan.artefacts.entries) == ["small_fig"]


def test_what_is_finished_is_shown_without_computing_anything(planned, published):
    def computed(plan: Plan) -> list[int]:
        return [len(plan.computed(kind)) for kind in plan.kinds]

    assert computed(planned()) == [1, 2, 3, 0]  # trainings are restored seed by seed
    assert computed(planned(finished=True)) == [0, 0, 0, 0]
    ARCHIVE.unlink()
    assert computed(planned()) == [1, 2, 3, 1]
    assert computed(planned(finished=True)) == [0, 0, 0, 0]


def test_an_entry_without_one_of_its_seeds_is_shown_with_the_others(planned, published):
    """And a profiler is taken, because no grouping needs its models."""
    missing = Key("grouping", "profiled", 1)
    archive.write(ARCHIVE, [each for key, each in published.items() if key != missing])
    plan = planned(finished=True)
    assert plan.archives.taken == known(plan) == EVERY - {missing}
    assert list(plan.artefacts.entries) == ["small_fig"]
    assert known(planned(finished=True, seeds=1)) == {key for key in EVERY if key.seed == 0}


def test_what_judges_and_shows_runs_again_when_seeds_disappear(planned, published):
    """Its parameters name the seeds; files that are no longer read are no reason to run."""
    every = planned(finished=True).shown()
    assert every == planned().shown()
    archive.write(ARCHIVE, [each for key, each in published.items() if key[1:] != ("one", 1)])
    assert json.loads(planned(finished=True).shown()) == json.loads(every) | {
        "finished": {"one": [0]}
    }
    assert planned().shown() == every


@pytest.mark.parametrize("name", ["one", "clustered", "groups", "toy"])
def test_an_artefact_that_shows_what_is_left_out_is_not_made(planned, published, name):
    archive.write(ARCHIVE, [each for key, each in published.items() if key.name != name])
    plan = planned(finished=True)
    assert known(plan) == without(name)
    assert list(plan.artefacts.entries) == []


@pytest.mark.parametrize(
    ("missing", "made"), [(["one"], True), (["one", "clustered"], False), (["groups"], True)]
)
def test_an_artefact_may_be_made_without_some_of_what_it_reads(planned, published, missing, made):
    archive.write(ARCHIVE, [each for key, each in published.items() if key.name not in missing])
    ledger = changed("artefacts/small_fig/in_part", True)
    assert list(planned(ledger, finished=True).artefacts.entries) == ["small_fig"] * made


def test_what_was_computed_here_is_finished_unless_settings_differ(planned, published):
    archive.write(ARCHIVE, [each for key, each in published.items() if key.name != "one"])
    for seed in (0, 1):
        compute(Key("run", "one", seed), planned())
    plan = planned(finished=True)
    assert (known(plan), plan.archives.taken) == (EVERY, without("one"))
    compute(Key("run", "one", 1), planned(), identity="of other settings")
    assert known(planned(finished=True)) == EVERY - {Key("run", "one", 1)}


def test_jobs_know_what_is_finished_by_what_was_restored(planned, published):
    """They read no archive; what the workflow has restored for them is in its place."""
    for key in without("one"):
        (compute(key, planned()) / MARK).write_text("")
    assert known(planned(finished=True, archive=False)) == without("one")


# ---- How the workflow asks -----------------------------------------------------------------------


def test_the_rules_restore_what_is_taken_and_nothing_else(planned, published):
    plan = planned(changed("runs/one/rounds", 6))
    archives = plan.archives
    runs = [f"{name}/seed{seed}" for name in ("network", "clustered") for seed in (0, 1)]
    pattern = archives.constraint(plan.run)
    assert [name for name in runs if re.fullmatch(pattern, name)] == runs
    assert not any(re.fullmatch(pattern, f"one/seed{seed}") for seed in (0, 1))
    assert not re.fullmatch(pattern, "network/seed11")
    assert re.fullmatch(archives.constraint(plan.encoder), "code")
    asked = SimpleNamespace(record="network/seed1")
    assert archives.file_of(plan.run)(asked) == str(ARCHIVE)
    assert Key(*json.loads(archives.key_of(plan.run)(asked))) == Key("run", "network", 1)
    asked = SimpleNamespace(record="toy/seed0")
    assert Key(*json.loads(archives.key_of(plan.study)(asked))) == Key("study", "toy", 0)
    tables = planned().study.files("toy")
    assert list(archives.restored(plan.study)) == [("restore_study_toy", "toy/seed0", tables)]
    assert archives.computed(plan.study) == []
    more = planned(changed("studies/toy/seeds", {"demo": [0, 1, 2]}))
    assert list(more.archives.restored(more.study)) == [("restore_study_toy", "toy/seed0", tables)]
    assert more.archives.computed(more.study) == ["toy"]
    assert more.archives.missing_seeds(more.study, "toy") == "1|2"
    nothing = planned(archive=False).archives
    assert nothing.constraint(plan.run) == "none"
    assert (list(nothing.restored(plan.study)), nothing.computed(plan.study)) == ([], ["toy"])
