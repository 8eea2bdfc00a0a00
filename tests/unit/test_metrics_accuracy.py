"""Accuracy as FLT's tables print it, against sums written out by hand."""

import math

import pandas as pd
import pytest
from tiny_records import record, scores, write

from clustered_fl.metrics import accuracy
from clustered_fl.metrics.flt.newcomers import placements
from clustered_fl.records import index

# Six clients of three clusters, in shares, after 0, 4 and 10 rounds.
SCORES = {
    0: [0.1] * 6,
    4: [0.2, 0.2, 0.4, 0.4, 0.6, 0.6],
    10: [0.5, 0.7, 0.6, 0.6, 0.9, 0.9],
}


def indexed(*runs: tuple[str, int, str]) -> pd.DataFrame:
    """An index of runs: name, seed, folder."""
    return index.build([("run", name, name, seed, folder) for name, seed, folder in runs])


@pytest.fixture
def runs(tmp_path):
    """One run with two seeds; the second is 10 points better at the end."""
    better = SCORES | {10: [value + 0.1 for value in SCORES[10]]}
    content = record(test_rows=400)
    folders = [
        ("run", seed, write(tmp_path / f"seed{seed}", content, scores(curve)))
        for seed, curve in enumerate((SCORES, better))
    ]
    return indexed(*folders)


def literal(shares: list[float], images: int) -> dict[str, float]:
    """Mean, population variance and binomial error, one client after the other."""
    percent = [100 * share for share in shares]
    mean = sum(percent) / len(percent)
    variance = sum((each - mean) ** 2 for each in percent) / len(percent)
    error = 100 * math.sqrt(mean / 100 * (1 - mean / 100) / images)
    return {"accuracy": mean, "variance": variance, "error": error}


@pytest.mark.parametrize(
    ("share", "round_"), [(1.0, 10), (0.99, 4), (0.5, 4), (0.4, 4), (0.39, 0), (0.0, 0)]
)
def test_a_run_is_read_at_its_last_test_until_then(runs, share, round_):
    row = accuracy.by_seed(runs, share).iloc[0]
    assert row["round"] == round_
    expected = literal(SCORES[round_], 400)
    assert {name: row[name] for name in expected} == pytest.approx(expected)


def test_every_run_and_seed_is_a_row(runs, tmp_path):
    other = indexed(("other", 0, write(tmp_path / "other", record(test_rows=100), scores(SCORES))))
    table = accuracy.by_seed(pd.concat([runs, other]))
    assert table[["run", "seed"]].to_numpy().tolist() == [["run", 0], ["run", 1], ["other", 0]]
    assert list(table) == ["run", "seed", "round", "accuracy", "error", "variance"]


def test_newcomers_do_not_count(tmp_path):
    rows = [*scores(SCORES), *[(10, "newcomer", 6, "accuracy", 0.0)]]
    folder = write(tmp_path / "late", record(test_rows=400), rows)
    assert accuracy.by_seed(indexed(("run", 0, folder))).loc[0, "accuracy"] == pytest.approx(70)


@pytest.mark.parametrize(
    ("percent", "images", "printed"),
    [
        (82.73, 10_000, 0.38),  # Table I
        (52.77, 10_000, 0.50),  # Table II
        (74.11, 3440, 0.75),  # Table III has 0.74
        (46.50, 18_800, 0.36),  # Table IV
    ],
)
def test_the_error_is_the_one_that_the_paper_prints(percent, images, printed):
    assert round(accuracy.binomial_error(percent, images), 2) == printed


def test_an_interval_over_seeds_is_students(runs):
    """Quantiles of tables: 12.706 with one degree of freedom, 4.303 with two."""
    assert accuracy.half_width(pd.Series([60.0, 62.0])) == pytest.approx(12.706 * 1.0, rel=1e-4)
    three = pd.Series([1.0, 2.0, 3.0])
    assert accuracy.half_width(three) == pytest.approx(4.3027 / math.sqrt(3), rel=1e-4)
    assert math.isnan(accuracy.half_width(pd.Series([60.0])))


def test_seeds_are_put_together(runs):
    found = accuracy.across_seeds(accuracy.by_seed(runs)).loc["run"]
    assert found["seeds"] == 2
    assert found["accuracy"] == pytest.approx(75)
    assert found["interval"] == pytest.approx(12.706 * 5, rel=1e-4)
    errors = [100 * math.sqrt(p * (1 - p) / 400) for p in (0.7, 0.8)]
    assert found["error"] == pytest.approx(sum(errors) / 2)
    assert found["variance"] == pytest.approx(literal(SCORES[10], 400)["variance"])


def test_accuracy_within_true_clusters(runs):
    table = accuracy.by_cluster(runs)
    first = table[table["seed"] == 0].set_index("cluster")["accuracy"]
    assert first.to_dict() == pytest.approx({0: 60, 1: 60, 2: 90})


def test_curves_are_means_over_clients(runs):
    table = accuracy.over_rounds(runs)
    first = table[table["seed"] == 0].set_index("round")["accuracy"]
    assert first.to_dict() == pytest.approx({0: 10, 4: 40, 10: 70})


@pytest.mark.parametrize(("percent", "round_"), [(10, 0), (10.1, 4), (41, 10), (71, math.inf)])
def test_first_round_at_which_an_accuracy_is_reached(percent, round_):
    table = pd.DataFrame({0: [10.0, 30, 60], 1: [10.0, 50, 80]}, index=[0, 4, 10])
    assert accuracy.first_round(table, percent) == round_


def newcomer(client: int, true_group: int, clients: list[int], accuracy: float) -> dict:
    about = {"client": client, "true_group": true_group, "leaf": 0}
    return about | {"clients": clients, "accuracy": accuracy}


def test_newcomers_are_right_if_all_that_share_their_model_are_of_their_cluster(tmp_path):
    """Clients 6 and 7 are new, 8 has changed; groups may hold newcomers too."""
    new = [
        newcomer(6, 1, [2, 3, 6], 0.7),
        newcomer(7, 2, [0, 1, 7], 0.1),
        newcomer(8, 0, [0, 1, 8], 0.5),
    ]
    content = record(newcomers=new, test_rows=9)
    content["config"] = content["config"] | {"federation": {"newcomers": 1, "groups": 2}}
    folder = write(tmp_path / "a", content, scores(SCORES))
    table = placements(indexed(("run", 3, folder)))
    assert table["right"].tolist() == [True, False, True]
    assert table["kind"].tolist() == ["new", "new", "changed"]
    assert table["accuracy"].tolist() == pytest.approx([70, 10, 50])
    assert table["members"].tolist() == pytest.approx([60, 90, 60])
    assert set(table["seed"]) == {3}
    # A newcomer of another cluster that shares the model makes it wrong.
    new[0]["clients"] = [2, 3, 6, 7]
    folder = write(tmp_path / "b", content, scores(SCORES))
    assert not placements(indexed(("run", 0, folder)))["right"].iloc[0]


def test_a_run_without_newcomers_has_no_rows(tmp_path):
    content = record(newcomers=[], test_rows=9)
    content["config"] = content["config"] | {"federation": {"newcomers": 0, "groups": 2}}
    folder = write(tmp_path / "a", content, scores(SCORES))
    assert placements(indexed(("run", 0, folder))).empty
