"""Profilers and drift in ledgers, in the plan and on the command line."""

import json
from copy import deepcopy
from types import SimpleNamespace

import numpy as np
import pytest
from refusals import told

from clustered_fl.cli import main
from clustered_fl.data import dataset as datasets
from clustered_fl.data import federation as federations
from clustered_fl.data.partitions import build_federation
from clustered_fl.data.transforms import drifted
from clustered_fl.ledger.reading import load_ledger
from clustered_fl.ledger.settings import Settings
from clustered_fl.models import model_entry
from clustered_fl.workflow import federations as of_plan
from clustered_fl.workflow.fingerprint import fingerprint
from clustered_fl.workflow.plan import Plan

PLAIN = {"kind": "dirichlet", "clients": 8, "newcomers": 2, "alpha": 0.5, "minimum": 3}
DRIFTING = PLAIN | {"drift": {"transforms": 2}}
ABOUT = {
    "purpose": "to test",
    "expected": "nothing",
    "minutes": {"demo": 1},
    "seeds": {"demo": [0, 1]},
}
ENCODER = ABOUT | {
    "dataset": "cifar10",
    "federation": DRIFTING,
    "model": {"name": "supervised_autoencoder", "reconstruction": 0.5},
    "training": {"epochs": 2, "batch_size": 32, "lr": 0.001, "optimiser": "adam"},
    "method": {"name": "fedavg"},
    "rounds": 4,
    "keep_every": 2,
}
GROUPING = ABOUT | {
    "dataset": "cifar10",
    "federation": DRIFTING,
    "profiler": "encoder",
    "method": {"name": "repa", "clusters": 2},
}
CLUSTERED = ENCODER | {"method": {"name": "one_shot", "newcomers": True}, "grouping": "groups"}
LEDGER = {
    "paper": "cfl",
    "title": "A paper",
    "authors": "Somebody",
    "year": 2023,
    "versions": ["first"],
    "groupings": {"groups": GROUPING},
    "runs": {
        "encoder": ENCODER,
        "clustered": CLUSTERED,
        "still": ENCODER | {"federation": PLAIN},
        "other": ENCODER | {"model": {"name": "le_net"}},
    },
    "studies": {},
    "artefacts": {},
    "claims": {},
}


def changed(place, value):
    content = deepcopy(LEDGER)
    *parents, key = place.split("/")
    inner = content
    for parent in parents:
        inner = inner[parent]
    inner[key] = value
    return content


@pytest.fixture
def write(tmp_path):
    def write(content):
        path = tmp_path / "cfl.yaml"
        path.write_text(json.dumps(content))
        return path

    return write


def refusal(path):
    return told(load_ledger, path).removeprefix(f"{path}: ")


# ---- The ledger ---------------------------------------------------------------------------------


def test_a_grouping_may_name_a_run(write):
    assert load_ledger(write(LEDGER)).groupings["groups"].profiler == "encoder"


ONE = "grouping groups at scale demo"


@pytest.mark.parametrize(
    ("place", "value", "line"),
    [
        ("groupings/groups/profiler", "absent", "groups names run 'absent', which does not exist"),
        (
            "groupings/groups/profiler",
            "other",
            f"{ONE}: profiler other must train one model for all",
        ),
        (
            "groupings/groups/profiler",
            "clustered",
            f"{ONE}: profiler clustered must train one model",
        ),
        ("groupings/groups/profiler", "still", f"{ONE} has another federation than its profiler"),
        (
            "groupings/groups/dataset",
            "mnist",
            "run clustered at scale demo has another dataset than",
        ),
        (
            "runs/encoder/seeds",
            {"demo": [1]},
            f"{ONE} has the seed 0, which its profiler encoder lacks; it has 1",
        ),
        (
            "runs/encoder/seeds",
            {"demo": []},
            f"{ONE} has the seed 0, which its profiler encoder lacks; it has none",
        ),
        (
            "groupings/groups/scales",
            {"demo": {"profiler": "absent"}},
            f"{ONE}: profiler 'absent' must be a run without a sweep",
        ),
        (
            "runs/encoder/sweep",
            {"setting": "model.reconstruction", "values": {"demo": [0, 1]}},
            f"{ONE}: profiler 'encoder' must be a run without a sweep",
        ),
    ],
)
def test_profilers_that_cannot_be_are_told(write, place, value, line):
    assert refusal(write(changed(place, value))).startswith(line)


def test_a_profiler_may_have_more_seeds_than_its_grouping_and_that_than_its_runs(write):
    content = changed("runs/clustered/seeds", {"demo": [1]})
    content["groupings"]["groups"]["seeds"] = {"demo": [1, 0]}
    content["runs"]["encoder"]["seeds"] = {"demo": [0, 1, 2], "paper": [0]}
    load_ledger(write(content))


def test_one_network_is_enough(write):
    content = changed("groupings/groups/encoder", "enc")
    about = {"purpose": "p", "expected": "e", "minutes": {}, "dataset": "mnist"}
    content["encoders"] = {"enc": about | {"model": {}, "training": {"epochs": 1}}}
    line = refusal(write(content))
    assert line == f"{ONE} names an encoder and a profiler; it can have one of them"


# ---- The plan -----------------------------------------------------------------------------------


@pytest.fixture
def plan(write):
    return Plan(Settings(papers=["cfl"]), write(LEDGER).parent)


def of(name, seed=0):
    return SimpleNamespace(name=name, seed=str(seed))


def test_a_profiler_takes_the_place_of_an_encoder(plan):
    folder = "results/demo/runs/encoder/seed1"
    assert plan.below(of("groups", 1)) == folder
    expected = [f"{folder}/{file}" for file in ("record.json", "models.safetensors")]
    assert plan.below_files(of("groups", 1)) == expected


def test_the_code_of_a_profile_is_that_of_its_network_too(plan):
    code = plan.grouping["groups"].code
    assert model_entry("supervised_autoencoder") in code
    assert plan.grouping.code(of("groups")) == fingerprint(*code)


def test_same_clients_share_their_drifted_images(plan):
    (first,) = plan.dataset(of("encoder", 1))
    assert [first] == plan.dataset(of("groups", 1)) == plan.dataset(of("clustered", 1))
    assert [first] != plan.dataset(of("encoder", 0))
    start, key, seed = first.rsplit("/", 2)
    assert (start, seed) == ("data/builtin/drift", "seed1.safetensors")
    clients = SimpleNamespace(clients=key, seed="1")
    assert plan.federations.source(clients) == "data/builtin/cifar10.safetensors"
    assert json.loads(plan.federations.settings(clients)) == DRIFTING
    assert len(plan.federations.images_code(clients)) == 16


def test_other_code_of_drift_is_another_identity_of_what_trains_on_it(write, monkeypatch):
    """Archived records are then not taken; the first code adds nothing to an identity."""
    parts = []
    for first in (fingerprint(*of_plan.IMAGES), "that of other code"):
        monkeypatch.setattr(of_plan, "FIRST", first)
        plan = Plan(Settings(papers=["cfl"], archive=False), write(LEDGER).parent)
        parts.append({n: e.partition for kind in plan.kinds for n, e in kind.entries.items()})
    changed = {name for name in parts[0] if parts[0][name] != parts[1][name]}
    configs = {name: entry.config for k in plan.kinds for name, entry in k.entries.items()}
    drifts = {name for name, each in configs.items() if each.get("federation", {}).get("drift")}
    assert changed == drifts
    assert 0 < len(drifts) < len(configs)


def test_without_drift_images_are_the_datasets(plan, write):
    assert plan.dataset(of("still")) == ["data/builtin/cifar10.safetensors"]
    ledger = write(changed("runs/still/federation/drift", None))
    none = Plan(Settings(papers=["cfl"]), ledger.parent)
    assert none.dataset(of("still")) == ["data/builtin/cifar10.safetensors"]


def test_another_drift_makes_other_images(plan, write):
    content = deepcopy(LEDGER)
    for part in (content["runs"]["encoder"], content["runs"]["clustered"]):
        part["federation"] = PLAIN | {"drift": {}}
    content["groupings"]["groups"]["federation"] = PLAIN | {"drift": {}}
    other = Plan(Settings(papers=["cfl"]), write(content).parent)
    (images,) = other.dataset(of("encoder"))
    assert "/drift/" in images
    assert [images] != plan.dataset(of("encoder"))


# ---- The command line ---------------------------------------------------------------------------


@pytest.fixture
def source(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (130, 3, 24, 24), dtype=np.uint8)
    made = datasets.build("cifar10", "builtin", x, np.arange(130) % 2, 120, ("a", "b"))
    datasets.save(made, tmp_path / "source")
    return made


def partition(folder, out, settings, *flags):
    about = {"data": folder / "source", "seed": 4, "settings": json.dumps(settings)}
    pairs = (f"--{name}={value}" for name, value in (about | {"out": folder / out}).items())
    return main(["partition", *pairs, *flags])


def test_the_step_writes_clients_or_their_images(source, tmp_path):
    assert partition(tmp_path, "clients", DRIFTING) == 0
    assert partition(tmp_path, "images", DRIFTING, "--images") == 0
    settings = {key: value for key, value in DRIFTING.items() if key != "kind"}
    federation = build_federation(source, 4, "dirichlet", **settings)
    expected = drifted(source, federation, {"transforms": 2}, 4)
    found = datasets.load(tmp_path / "images")
    np.testing.assert_array_equal(found.x, expected.x)
    stored, _ = federations.load(tmp_path / "clients")
    for first, second in zip(stored.train, federation.train, strict=True):
        np.testing.assert_array_equal(first, second)


def test_images_without_drift_are_refused_in_one_sentence(source, tmp_path, capsys):
    assert partition(tmp_path, "images", PLAIN, "--images") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line == "error: this federation has no drift; give it the setting `drift`"
