"""What is read from whole runs: agreement, criteria, overview, symbols, properties."""

import pandas as pd
import pytest
from tiny_records import record, rows, runs, scores, write

from clustered_fl.metrics import agreement, curves
from clustered_fl.metrics.cfl import criteria, properties, symbols
from clustered_fl.metrics.cfl.overview import describe_method, overview


def test_newcomers_are_at_home_where_their_cluster_is():
    assert agreement.newcomers_at_home(record()) == [True, False]


def test_ceiling_counts_training_clients_only():
    # The most frequent name of classes 0, 1, 2 is that of 4, 2 and 4 of the six clients.
    assert agreement.ceiling(record()) == pytest.approx((4 + 2 + 4) / 18)
    maps = [[0, 1, 2]] * 6 + [[2, 1, 0]] * 6
    assert agreement.ceiling(record(label_maps=maps)) == 1.0


def norms(mean: list[float], largest: list[float], seed: int = 0) -> pd.DataFrame:
    curves_ = {"mean_update_norm": mean, "max_update_norm": largest}
    measured = rows(**{name: dict(enumerate(curve)) for name, curve in curves_.items()})
    columns = ["round", "scope", "member", "metric", "value"]
    return pd.DataFrame(measured, columns=columns).assign(run="r", seed=seed)


def test_criteria_need_a_small_mean_and_a_large_client():
    mean, largest = [1.0, 0.05, 0.05, 0.5], [9.0, 9.0, 0.3, 9.0]
    assert criteria.share_of_rounds(norms(mean, largest), 0.1, 4) == 0.25
    assert criteria.share_of_rounds(norms(mean, largest), 0.1, 2) == 0.5
    assert criteria.share_of_rounds(norms(mean, largest), 0.01, 2) == 0.0


def test_criteria_know_only_the_past_and_keep_seeds_apart():
    early = norms([0.05, 1.0], [9.0, 9.0])
    assert criteria.share_of_rounds(early, 0.1, 4) == 0.0
    both = pd.concat([norms([1.0, 1.0], [9, 9]), norms([0.05, 0.05], [9, 9], seed=1)])
    assert criteria.share_of_rounds(both, 0.1, 4) == 0.0


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"name": "fedavg"}, "fedavg"),
        ({"name": "cfl", "auto": False, "permute": True}, "cfl, hidden parameters"),
        (
            {"name": "cfl", "auto": True, "linkage": "complete"},
            "cfl, splits by criteria, complete linkage",
        ),
        ({"name": "cfl", "linkage": "single"}, "cfl"),
    ],
)
def test_methods_are_described(settings, words):
    assert describe_method(settings) == words


def test_overview_has_a_row_per_run_and_seed(tmp_path):
    measured = scores({0: [0.1] * 6, 10: [0.5, 0.5, 0.6, 0.6, 0.7, 0.7]})
    folders = {k: write(tmp_path / f"seed{k}", record(), measured, 3.5) for k in (0, 1)}
    table = overview(runs({"run": folders}))
    assert table["seed"].tolist() == [0, 1]
    first = table.iloc[0].drop(["run", "seed"]).to_dict()
    assert first.pop("score") == pytest.approx(0.6)
    assert first == {
        "method": "cfl",
        "rounds": 10,
        "lowest": 0.5,
        "highest": 0.7,
        "groups": 3,
        "agreement": 1.0,
        "splits": "4, 6",
        "seconds": 3.5,
    }


def test_symbols_have_the_values_of_the_run():
    measured = [(9, "client", c, "loss", 0.1 * c) for c in range(6)]
    measured += rows(mean_update_norm={0: 0.5, 1: 2.0})
    frame = pd.DataFrame(measured, columns=["round", "scope", "member", "metric", "value"])
    found = symbols.values(record(), frame)
    assert found["αᵢⱼ ∈ [−1, 1]"] == "-0.50 to 0.25 at the first split"
    assert found["Dᵢ"] == "10 samples each"
    assert (found["θ ∈ Θ"], found["φₖ(x, y)"][:9]) == ("LeNet", "CIFAR-10,")
    assert found["rᵢ(θ)"].startswith("0.250 ")
    assert found["ε₂ > 0"].endswith("0.2 to 2")
    assert "below 0.50" in found["γₘₐₓ ∈ [0, 1]"]
    assert found["c ∈ C"] == "3 groups of 2, 2, 2 clients"


FAMILIES = ("fig8_congruent", "fig9", "fig9_auto", *(f"permuted{end}" for end in ("", "_hidden")))
OTHERS = tuple(f"permuted_{end}" for end in ("auto", "code", "fedavg", "local", "oracle"))


@pytest.fixture(scope="module")
def known(tmp_path_factory) -> pd.DataFrame:
    """Runs that differ in their final accuracy and groups."""
    folders, place_of = {}, tmp_path_factory.mktemp("runs")
    for place, name in enumerate((*FAMILIES, *OTHERS)):
        measured = scores({10: [place / 100] * 6})
        measured += rows(gap_update={0: 0.1, 1: -0.1}, correct_update={0: 1.0, 1: 1.0})
        measured += rows(mean_update_norm={0: 1.0, 1: 0.05}, max_update_norm={0: 1.0, 1: 0.45})
        content = record(groups=[0] * 6) if name.endswith("auto") else record()
        if name.startswith("permuted"):
            content["data"] |= {"name": "mnist"}
        folders[f"cfl_{name}"] = {0: write(place_of / name, content, measured)}
    return runs(folders)


@pytest.fixture(scope="module")
def evidence(known) -> dict[str, str]:
    return properties.evidence(known)


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("non-convex objectives", "accuracy 0.030 against 0.070 with FedAvg"),
        ("non-convex objectives", "3 groups, agreement 1.00"),
        ("no change of the FedAvg protocol", "3 numbers a round (FedAvg: 3)"),
        ("no major overhead for clients", "the same local training as under FedAvg: 3 epochs"),
        ("number of clusters not needed", "MNIST: 1 group, agreement 0.00"),
        ("theoretical guarantees", "positive 10 times (groups and rounds), and the"),
        ("theoretical guarantees", "correct in 10 of them; it was correct another 10 times"),
        ("formal privacy guarantees possible", "agreement 1.00"),
        ("formal privacy guarantees possible", "accuracy changes by 0.0100"),
        ("clusters only if necessary", "50.0%, 50.0% and 0.0% of the rounds"),
        ("varying client populations", "CIFAR-10: 1 of 2 newcomers"),
        ("varying client populations", "accuracy is 0.350, that of the trained clients 0.010"),
        ("varying client populations", "MNIST: 1 of 2 newcomers"),
        ("varying client populations", "accuracy is 0.350, that of the trained clients 0.030"),
    ],
)
def test_evidence_comes_from_the_records(evidence, name, part):
    assert part in evidence[name]


def test_a_run_without_seeds_at_this_scale_is_passed_over(known):
    others = known[known["name"] != "cfl_fig9_auto"]
    sentence = properties.evidence(others)["number of clusters not needed"]
    assert "CIFAR-10" not in sentence
    assert "MNIST: 1 group" in sentence


def test_symbols_of_a_run_without_splits():
    frame = pd.DataFrame(rows(mean_update_norm={0: 1.0}, loss={0: 0.5}))
    frame.columns = ["round", "scope", "member", "metric", "value"]
    root = dict.fromkeys(("split_round", "cut_similarity", "similarity"))
    root = {**record()["tree"][0], "children": [], **root}
    found = symbols.values(record(tree=[root], groups=[0] * 6), frame)
    assert "there was none" in found["αᵢⱼ ∈ [−1, 1]"]
    assert found["γₘₐₓ ∈ [0, 1]"] == "not used"


def test_running_median_ignores_a_spike_and_keeps_curves_apart():
    spiky = norms([1.0, 1.0, 9.0, 1.0, 1.0], [5.0] * 5)
    smooth = curves.running_median(pd.concat([spiky, spiky.assign(seed=1, value=7.0)]), 3)
    expected = {("max_update_norm", 0): 5, ("mean_update_norm", 0): 1}
    found = smooth.groupby(["metric", "seed"])["value"].agg(["min", "max"])
    for key, value in expected.items():
        assert found.loc[key].tolist() == [value, value]
    assert set(found.loc[(slice(None), 1), :].to_numpy().ravel()) == {7.0}
