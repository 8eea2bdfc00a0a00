"""Every contender on every ground: what a ledger's two short sections stand for."""

import json
from copy import deepcopy
from itertools import product
from types import SimpleNamespace

import pytest

from clustered_fl.errors import InputError
from clustered_fl.ledger import load_ledger, resolved_groupings, resolved_runs
from clustered_fl.plan import Plan
from clustered_fl.same_ground import told
from clustered_fl.settings import Settings

ENCODER = {
    "purpose": "to test",
    "expected": "nothing",
    "minutes": {"demo": 1},
    "dataset": "fashion_mnist",
    "model": {"name": "conv_autoencoder"},
    "training": {"epochs": 1},
}
WARM_UP = {
    "model": {"name": "supervised_autoencoder", "code": 8},
    "training": {"epochs": 1, "batch_size": 5, "lr": 0.1},
    "rounds": 3,
    "minutes": {"demo": 2},
    "scales": {"demo": {"rounds": 1}},
}
SWAP = {
    "title": "labels swapped",
    "differs": "Two labels are exchanged",
    "clusters": 2,
    "dataset": "mnist",
    "federation": {"kind": "label_swap", "clients": 6, "groups": 2, "samples": 20},
    "model": {"name": "mlp"},
    "training": {"epochs": 1, "batch_size": 10, "lr": 0.1},
    "rounds": 8,
    "encoder": "enc",
    "warm_up": WARM_UP,
    "minutes": {"demo": 1},
    "seeds": {"demo": [0], "desktop": [0]},
    "grouping_seeds": {"demo": [0], "desktop": [0, 1]},
    "scales": {"demo": {"rounds": 4, "federation": {"samples": 10}}},
}
WRITERS = SWAP | {
    "title": "writers",
    "clusters": 3,
    "truth": False,
    "dataset": "femnist",
    "federation": {"kind": "writers", "clients": 6},
    "seeds": {"desktop": [0]},
    "grouping_seeds": {"desktop": [0]},
    "scales": {},
}
ITEM = {
    "kind": "table",
    "title": "A",
    "caption": "B",
    "published": "no",
    "where": "here",
    "notebook": "ground/x.ipynb",
}


def one_shot(network: str, **method) -> dict:
    return {"method": method, "network": network, "minutes": {"demo": 1}}


LEDGER = {
    "paper": "ground",
    "title": "The same ground",
    "authors": "Nobody",
    "versions": [],
    "encoders": {"enc": ENCODER},
    "grounds": {"swap": SWAP, "writers": WRITERS},
    "contenders": {
        "fedavg": {"title": "FedAvg", "citation": "A", "method": {"name": "fedavg"}},
        "oracle": {
            "title": "true groups",
            "citation": "B",
            "method": {"name": "oracle"},
            "needs": {"truth": True},
        },
        "ifca": {
            "title": "IFCA",
            "citation": "C",
            "method": {"name": "ifca", "clusters": "{clusters}"},
            "traffic": {"down": "{clusters}"},
            "changes": {"writers": {"method": {"random_rounds": 1}}},
            "scales": {"demo": {"method": {"pretrain": 1}}},
        },
        "flt": {
            "title": "FLT",
            "citation": "D",
            "method": {"name": "one_shot"},
            "grouping": one_shot("encoder", name="flt", k=4),
            "changes": {"writers": {"grouping": {"k": 2}}},
        },
        "repa": {
            "title": "REPA",
            "citation": "E",
            "method": {"name": "one_shot"},
            "grouping": one_shot("warm_up", name="repa", clusters="{clusters}"),
        },
    },
    "runs": {},
    "studies": {},
    "artefacts": {
        "ground_all": ITEM | {"grounds": "all", "parameters": {"baseline": "fedavg"}},
        "ground_swap": ITEM | {"grounds": ["swap"]},
        "ground_none": ITEM | {"encoders": ["enc"]},
        "ground_words": ITEM | {"grounds": "all", "measured": False},
    },
    "claims": {
        "GR-x": {
            "artefact": "ground_all",
            "statement": "s",
            "published": "no",
            "where": "here",
            "grounds": ["writers"],
        }
    },
}


def changed(place: str, value) -> dict:
    content = deepcopy(LEDGER)
    *parents, key = place.split("/")
    inner = content
    for parent in parents:
        inner = inner[parent]
    inner[key] = value
    return content


@pytest.fixture
def read(tmp_path):
    def read(content):
        (tmp_path / "ground.yaml").write_text(json.dumps(content))
        return load_ledger(tmp_path / "ground.yaml")

    return read


@pytest.fixture
def ledger(read):
    return read(LEDGER)


@pytest.fixture
def plan(tmp_path, ledger):
    return Plan(Settings(papers=["ground"], scale="desktop", source="mirror"), tmp_path)


RUNS = [f"ground_{g}_{c}" for g, c in product(LEDGER["grounds"], LEDGER["contenders"])]
RUNS = [name for name in RUNS if name != "ground_writers_oracle"]
WARM_UPS = ["ground_swap_warm_up", "ground_writers_warm_up"]
GROUPINGS = [f"ground_groups_{g}_{c}" for g in LEDGER["grounds"] for c in ("flt", "repa")]


def test_every_contender_has_a_run_on_every_ground_where_it_makes_sense(ledger):
    assert sorted(ledger.runs) == sorted(RUNS + WARM_UPS)
    assert sorted(ledger.groupings) == sorted(GROUPINGS)


def test_a_run_is_the_ground_with_the_contender_s_method(ledger):
    config = resolved_runs(ledger, "desktop")["ground_swap_ifca"]["config"]
    of_ground = ("dataset", "federation", "model", "training", "rounds")
    assert {key: config[key] for key in of_ground} == {key: SWAP[key] for key in of_ground}
    assert config["method"] == {"name": "ifca", "clusters": 2}
    assert (config["grouping"], config["evaluate_every"]) == (None, 2)
    assert ledger.runs["ground_swap_ifca"].seeds == SWAP["seeds"]


def test_ground_and_contender_both_change_with_the_scale(ledger):
    config = resolved_runs(ledger, "demo")["ground_swap_ifca"]["config"]
    assert config["rounds"] == 4
    assert config["federation"] == SWAP["federation"] | {"samples": 10}
    assert config["method"] == {"name": "ifca", "clusters": 2, "pretrain": 1}


def test_a_contender_may_have_to_do_something_else_on_one_ground(ledger):
    runs = resolved_runs(ledger, "desktop")
    ifca = {"name": "ifca", "clusters": 3, "random_rounds": 1}
    assert runs["ground_writers_ifca"]["config"]["method"] == ifca
    found = resolved_groupings(ledger, "desktop")
    k = {name: found[name]["config"]["method"].get("k") for name in found}
    assert (k["ground_groups_swap_flt"], k["ground_groups_writers_flt"]) == (4, 2)


def test_groupings_see_the_ground_s_clients_through_its_networks(ledger):
    for scale, samples in (("demo", 10), ("desktop", 20)):
        found = resolved_groupings(ledger, scale)
        flt, repa = (found[f"ground_groups_swap_{name}"]["config"] for name in ("flt", "repa"))
        assert flt["federation"]["samples"] == repa["federation"]["samples"] == samples
        assert (flt["encoder"], flt["profiler"]) == ("enc", None)
        assert (repa["encoder"], repa["profiler"]) == (None, "ground_swap_warm_up")
        assert repa["method"] == {"name": "repa", "clusters": 2}
    assert found["ground_groups_swap_flt"]["seeds"] == [0, 1]
    assert ledger.runs["ground_swap_repa"].grouping == "ground_groups_swap_repa"


def test_a_ground_has_one_warm_up_of_its_clients(ledger):
    for scale, rounds, samples in (("demo", 1, 10), ("desktop", 3, 20)):
        run = resolved_runs(ledger, scale)["ground_swap_warm_up"]
        assert run["config"]["model"] == WARM_UP["model"]
        assert run["config"]["method"] == {"name": "fedavg"}
        assert run["config"]["rounds"] == rounds
        assert run["config"]["federation"]["samples"] == samples
    assert run["seeds"] == [0, 1]


def test_without_grounds_a_ledger_stays_as_it_is(read):
    nothing = {key: {} for key in ("grounds", "contenders", "claims", "artefacts")}
    content = LEDGER | nothing
    assert (read(content).runs, read(content).groupings) == ({}, {})


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"clusters": "{clusters}"}, {"clusters": 7}),
        ({"a": {"b": "{clusters}", "c": "clusters"}}, {"a": {"b": 7, "c": "clusters"}}),
        ({"name": "repa", "k": 5, "none": None}, {"name": "repa", "k": 5, "none": None}),
    ],
)
def test_the_number_of_clusters_is_told_where_it_is_asked_for(settings, expected):
    assert told(settings, 7) == expected


# ---- What artefacts and claims read --------------------------------------------------------------


def test_an_artefact_of_all_grounds_reads_everything(ledger):
    artefact = ledger.artefacts["ground_all"]
    assert sorted(artefact.runs) == sorted(RUNS + WARM_UPS)
    assert sorted(artefact.groupings) == sorted(GROUPINGS)
    assert artefact.encoders == ["enc"]
    assert artefact.parameters["baseline"] == "fedavg"
    assert [row["run"] for row in artefact.parameters["rows"]] == RUNS


def test_an_artefact_of_one_ground_reads_nothing_of_others(ledger):
    artefact = ledger.artefacts["ground_swap"]
    named = [*artefact.runs, *artefact.groupings]
    assert all("_swap_" in name for name in named)
    assert len(named) == 6 + 2
    assert list(artefact.parameters["grounds"]) == ["swap"]


def test_an_artefact_that_measures_nothing_is_told_and_waits_for_nobody(ledger):
    artefact = ledger.artefacts["ground_words"]
    assert (artefact.runs, artefact.groupings, artefact.encoders) == ([], [], [])
    assert artefact.parameters["rows"] == ledger.artefacts["ground_all"].parameters["rows"]


def test_an_artefact_without_grounds_is_told_of_none(ledger):
    artefact = ledger.artefacts["ground_none"]
    assert (artefact.runs, artefact.encoders, artefact.parameters) == ([], ["enc"], {})


def test_a_notebook_is_told_what_belongs_together_and_what_is_sent(ledger):
    rows = {row["run"]: row for row in ledger.artefacts["ground_all"].parameters["rows"]}
    repa = {"ground": "swap", "contender": "repa", "run": "ground_swap_repa"}
    repa |= {"grouping": "ground_groups_swap_repa", "warm_up": "ground_swap_warm_up"}
    repa |= {"encoder": "", "down": 1, "up": 1, "before_down": [], "before_up": []}
    assert rows["ground_swap_repa"] == repa
    assert (rows["ground_swap_ifca"]["down"], rows["ground_writers_ifca"]["down"]) == (2, 3)
    assert rows["ground_swap_flt"]["encoder"] == "enc"
    about = ledger.artefacts["ground_all"].parameters
    assert about["contenders"]["oracle"]["needs"]["truth"]
    assert not about["grounds"]["writers"]["truth"]
    assert json.loads(json.dumps(about)) == about


def test_a_claim_on_a_ground_is_measured_on_everything_there(ledger):
    expected = [name for name in (*RUNS, *WARM_UPS) if "_writers_" in name]
    assert sorted(ledger.claims["GR-x"].runs) == sorted(expected)
    own = [name for name in GROUPINGS if "_writers_" in name]
    assert ledger.claims["GR-x"].groupings == own


# ---- Slips of the pen ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("place", "value", "sentence"),
    [
        ("grounds/swap/colour", 1, "unknown key 'grounds.swap.colour'; allowed are title, differs"),
        (
            "grounds/swap/warm_up/epochs",
            1,
            "unknown key 'grounds.swap.warm_up.epochs'; allowed are model, training, method",
        ),
        ("contenders/flt/k", 1, "unknown key 'contenders.flt.k'; allowed are title, citation"),
        (
            "contenders/flt/grouping/k",
            1,
            "unknown key 'contenders.flt.grouping.k'; allowed are method, network",
        ),
        (
            "contenders/flt/needs",
            {"labels": True, "luck": True},
            "unknown key 'contenders.flt.needs.luck'; allowed are training, labels, everybody",
        ),
        (
            "contenders/flt/changes/swap",
            {"model": {}},
            "unknown key 'contenders.flt.changes.swap.model'; allowed are method, grouping",
        ),
        (
            "contenders/flt/changes/rings",
            {},
            "contender flt names ground 'rings', which is not there; there are swap, writers",
        ),
        (
            "artefacts/ground_swap/grounds",
            ["swap", "rings"],
            "ground_swap names ground 'rings', which is not there; there are swap, writers",
        ),
        (
            "grounds/two_rings",
            SWAP,
            "ground 'two_rings': allowed are names without `_`, but not 'groups'",
        ),
        ("grounds/groups", SWAP, "ground 'groups': allowed are names without `_`, but not"),
        ("claims/GR-x/grounds", ["x"], "GR-x names ground 'x', which is not there; there are swap"),
        (
            "grounds/swap/warm_up",
            None,
            "contender repa needs the warm_up of ground swap, which has none",
        ),
        (
            "grounds/writers/encoder",
            None,
            "contender flt needs the encoder of ground writers, which has none",
        ),
        (
            "grounds/swap/encoder",
            "other",
            "ground_all names encoder 'other', which is not there",
        ),
        (
            "contenders/warm_up",
            LEDGER["contenders"]["fedavg"],
            "'ground_swap_warm_up' is taken, and would be something of a contender on a ground",
        ),
        (
            "grounds/swap/scales",
            {"demo": {"round": 1}},
            "run ground_swap_fedavg at scale demo: unknown key 'round'; allowed are dataset",
        ),
        (
            "contenders/repa/traffic",
            {"before_up": ["weights"]},
            "contenders.repa.traffic.before_up.0: Input should be 'encoder', 'network' or",
        ),
    ],
)
def test_a_slip_of_the_pen_is_one_sentence(read, tmp_path, place, value, sentence):
    with pytest.raises(InputError) as caught:
        read(changed(place, value))
    (line,) = str(caught.value).splitlines()
    assert line.startswith(f"{tmp_path / 'ground.yaml'}: {sentence}")


# ---- The plan ------------------------------------------------------------------------------------


def of(name: str, seed: int = 0) -> SimpleNamespace:
    return SimpleNamespace(name=name, seed=str(seed))


def test_contenders_on_one_ground_share_a_file_of_clients(plan):
    names = [name for name in (*RUNS, *WARM_UPS, *GROUPINGS) if "_swap_" in name]
    found = {plan.hosts.federation(of(name, 1)) for name in names}
    assert found == {"results/desktop/federations/ground_swap_fedavg/seed1.safetensors"}
    other = plan.hosts.federation(of("ground_writers_repa", 1))
    assert other == "results/desktop/federations/ground_writers_fedavg/seed1.safetensors"


def test_the_shared_file_is_that_of_the_same_clients(plan):
    for name in (*RUNS, *WARM_UPS, *GROUPINGS):
        host = plan.hosts.federation(of(name)).split("/")[3]
        own, its = plan.federation_settings(of(name)), plan.federation_settings(of(host))
        assert (own, plan.dataset_of(of(name))) == (its, plan.dataset_of(of(host)))


def test_other_runs_keep_a_file_of_their_own(plan):
    found = plan.hosts.federation(of("cfl_fig9", 2))
    assert found == "results/desktop/federations/cfl_fig9/seed2.safetensors"


def test_what_repa_describes_clients_by_is_the_warm_up_of_the_same_seed(plan):
    found = plan.encoder_of(of("ground_groups_swap_repa", 1))
    assert found == "results/desktop/runs/ground_swap_warm_up/seed1"
    assert plan.seeds("ground_swap_warm_up") == [0, 1]


def test_what_shows_a_ground_that_is_not_run_at_a_scale_is_not_made_there(read, tmp_path):
    alone = ITEM | {"grounds": ["writers"]}
    read(changed("artefacts/ground_writers", alone))
    demo, desktop = (
        Plan(Settings(papers=["ground"], scale=scale, source="builtin"), tmp_path)
        for scale in ("demo", "desktop")
    )
    assert set(desktop.artefacts) - set(demo.artefacts) == {"ground_writers"}
    made = {file.split("/")[3] for file in demo.paper_files("ground")}
    assert made == set(demo.artefacts) == set(LEDGER["artefacts"])


def test_a_ground_without_seeds_is_planned_without_records(tmp_path, ledger):
    demo = Plan(Settings(papers=["ground"]), tmp_path)
    files = demo.artefact_inputs(SimpleNamespace(artefact="ground_all"))
    assert files
    assert not [file for file in files if "_writers_" in file]
