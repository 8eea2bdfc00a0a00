"""REPA's notebooks on made-up records: all play and leave what the ledger promises."""

from pathlib import Path

import numpy as np
import pytest
import tiny_profiles as tiny
from playing import Made, Played

from clustered_fl.ledger.reading import load_ledger
from clustered_fl.metrics.repa import correlation, profiles, robustness
from clustered_fl.records import index
from clustered_fl.records.reading import load_record

ROOT = Path(__file__).parents[2]
LEDGER = load_ledger(ROOT / "config" / "papers" / "repa.yaml")
ARTEFACTS = [name for name, entry in LEDGER.artefacts.items() if not entry.studies]
TRUTH = [client * 3 // tiny.CLIENTS for client in range(tiny.CLIENTS)]


def members(name: str) -> list[str]:
    """Runs of an entry of the ledger, as `ledger.resolved_runs` names them."""
    sweep = LEDGER.runs[name].sweep
    values = sweep.model_dump()["values"]["desktop"] if sweep else []
    return [f"{name}_{value}" for value in values] or [name]


def most(clusters: int) -> int:
    """Clusters of twelve clients, more where more are asked for."""
    return min(clusters, tiny.CLIENTS // 2 + (clusters > 10))


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Made:
    """The index of what all artefacts read; groupings have two seeds, runs one."""
    place, rows = tmp_path_factory.mktemp("results"), []
    for name, entry in LEDGER.groupings.items():
        number = most(entry.method["clusters"])
        about = (number, entry.federation, TRUTH if "shift" in name else None)
        for seed in (0, 1):
            folder = tiny.write_grouping(place / name / str(seed), seed, *about)
            rows.append(("grouping", name, name, seed, folder))
    for name, entry in LEDGER.runs.items():
        known = LEDGER.groupings.get(entry.grouping)
        number = most(known.method["clusters"]) if known else 1
        rows += [
            ("run", name, own, 0, tiny.write_run(place / own / "0", number))
            for own in members(name)
        ]
    return index.build(rows)


@pytest.fixture(scope="module")
def played(made, tmp_path_factory) -> Played:
    return Played(LEDGER.artefacts, made, tmp_path_factory.mktemp("artefacts"))


@pytest.mark.parametrize("name", ARTEFACTS)
def test_promised_files_are_there_and_say_that_data_are_stand_ins(name, played):
    played.check_files(name, "scale demo · built-in demo data")


@pytest.mark.parametrize("name", ARTEFACTS)
def test_files_are_the_same_every_time(name, played, tmp_path):
    played.check_again(name, tmp_path)


def test_every_curve_of_a_panel_is_held_against_one_similarity(played, made):
    given = LEDGER.artefacts["repa_fig1"].parameters
    named = {(cell["column"], cell["row"]): cell["grouping"] for cell in given["cells"]}
    shown = played.table("repa_fig1").set_index(["panel", "curve", "seed", "round"])["correlation"]
    for title, kind, column in given["panels"]:
        judge = index.folder(made, "grouping", f"repa_groups_cifar_{column}_clf", 1)
        if kind == "labels":
            own = profiles.label_counts(judge)[: tiny.CLIENTS]
            similar = correlation.label_similarity(own)
        else:
            (similar,) = profiles.pairwise(judge, "similarity").values()
        for curve, row in given["curves"].items():
            folder = index.folder(made, "grouping", named[column, row], 1)
            for now, cosine in profiles.pairwise(folder, "cosine").items():
                expected = correlation.correlation(similar, cosine)
                assert shown[title, curve, 1, now] == pytest.approx(expected, abs=1e-5)


def test_no_more_clusters_are_asked_for_than_there_are_clients(played):
    shown = played.table("repa_fig2")
    asked = LEDGER.artefacts["repa_fig2"].parameters["clusters"]
    assert sorted(set(shown["clusters"])) == [k for k in asked if k <= tiny.CLIENTS]
    assert set(shown["curve"]) == {"REPA", "REPA, SAE", "WD", "Distribution given", "Random"}


def test_uniformity_is_of_the_seeds_that_all_methods_have(made, tmp_path):
    late = (made["name"] == "repa_groups_mnist_sae_10") & (made["seed"] == 0)
    shown = Played(LEDGER.artefacts, made[~late], tmp_path).table("repa_fig2")
    assert set(shown["seed"]) == {1}


def test_accuracy_has_both_sets_and_both_ways_of_counting(played):
    for name in ("repa_fig3", "repa_fig4", "repa_fig5"):
        shown = played.table(name)
        sets = {"VAL"} if name == "repa_fig5" else {"VAL", "HO"}
        assert set(shown["set"].dropna()) == sets
        assert shown[["weighted", "unweighted"]].notna().any().all()


def test_the_figure_of_the_number_of_clusters_has_fedavg_as_one(played):
    variables = played.variables("repa_fig4")
    ends, means = variables["ends"], variables["means"]
    assert set(ends.loc[ends["method"] == "FedAvg", "clusters"]) == {1}
    one = means.loc[("FedAvg", 1)]
    assert one["smallest"] == one["largest"] == tiny.CLIENTS


def test_the_mechanism_is_of_the_last_tests_of_each_run(played):
    variables = played.variables("repa_fig5")
    lost = variables["lost"]
    assert len(lost) == len(LEDGER.artefacts["repa_fig5"].parameters["cells"])
    assert (lost.loc[lost["curve"] == "FedAvg", "clients"] <= tiny.CLIENTS).all()
    assert lost["clients"].max() > 0


def test_published_robustness_is_beside_ours(played, made):
    given, shown = LEDGER.artefacts["repa_table1"].parameters, played.table("repa_table1")
    assert len(shown) == len(given["rows"]) * len(given["columns"])
    found = shown.set_index(["clients", "vectors"])
    for cell in given["cells"]:
        kind = given["columns"][cell["column"]]["title"]
        row = found.loc[(kind, given["rows"][cell["row"]]["title"])]
        mean, error = cell["published"].values()
        assert (row["published"], row["± SE"]) == (mean, error)
        own = index.each(index.chosen(made, "grouping", cell["grouping"]))
        ours = np.mean([robustness.by_cluster(folder)["robustness"].mean() for *_, folder in own])
        assert float(row["ours"]) == pytest.approx(ours, abs=0.006)
        assert float(row["difference"]) == pytest.approx(ours - mean, abs=0.006)
        assert (row["pipelines"] == "–") == (kind == "Label skew")


def test_the_networks_behind_the_vectors_have_their_accuracy(played):
    networks = played.variables("repa_table1")["networks"]
    assert set(networks["run"]) == set(LEDGER.artefacts["repa_table1"].runs)
    assert networks["accuracy"].between(0, 100).all()


def test_a_single_cluster_is_among_those_that_robustness_is_asked_of(played):
    shown = played.table("repa_algorithm1")
    whole = shown[shown["shown"] == "clustering"]
    assert whole["clusters"].min() == 1
    assert set(shown["shown"]) == {"clustering", "cluster", "pass"}


def test_each_choice_is_drawn_once_and_the_usual_one_first(played):
    variables = played.variables("repa_sensitivity")
    rows = variables["pairs"][0]
    assert len(rows) == len(set(rows)) == sum(map(len, variables["robustness"].values()))
    usual = dict(reversed(rows))
    assert usual.keys() == variables["robustness"].keys()
    assert all(choice.endswith("(default)") for choice in usual.values())
    runs = [run for own in variables["accuracy"].values() for run in own.values()]
    assert variables["named"]["run"].tolist() == [name for run in runs for name in members(run)]
    ends = variables["ends"]
    assert {*zip(ends["question"], ends["choice"], strict=True)} == set(variables["pairs"][1])


def test_participation_and_what_was_just_trained_have_a_panel_each(played):
    variables = played.variables("repa_fig5")
    titles = [axis.get_title() for axis in variables["axes"]]
    assert titles == [*variables["groups"], "40%: each client compared with itself"]
    assert all(axis.lines for axis in variables["axes"])


def test_agreement_with_groups_that_differ_in_names_is_that_of_the_records(played, made):
    shown = played.table("repa_concept_shift").set_index(["name", "seed"])
    for name, grouping in LEDGER.artefacts["repa_concept_shift"].parameters["vectors"].items():
        folder = index.folder(made, "grouping", grouping, 0)
        expected = load_record(folder)["agreement"]["ari"]
        assert shown.loc[(name, 0), "agreement"] == pytest.approx(expected, abs=1e-5)
    assert np.isnan(shown.loc[("CFL", 0), "same"])
