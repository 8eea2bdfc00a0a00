"""The matrix of methods and kinds of clients, against loops over clients, rounds and models."""

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import tiny_groupings
import tiny_records as tiny

from clustered_fl.files import read_json, write_json
from clustered_fl.metrics.ground import budgets, matrix, traffic
from clustered_fl.records import index
from clustered_fl.records import reading as records

PARAMETERS = {"run": 11, "profiler": 7}
TRUTH = [0, 0, 0, 1, 1, 1]
CURVES = {0: {0: [0.1] * 6, 2: [0.4, 0.5, 0.6, 0.7, 0.8, 0.9], 4: [0.45, 0.6, 0.5, 0.7, 0.8, 0.9]}}
CURVES[1] = {0: [0.2] * 6, 2: [0.3] * 6, 4: [0.6, 0.7, 0.2, 0.8, 0.9, 1.0]}


def participation(rounds: int, clients: list[int]) -> list[tuple]:
    return [(r, "client", c, "loss", 1.0) for r in range(rounds) for c in clients]


def write_run(folder: Path, seed: int, groups: list[int], seconds: float = 6.0) -> str:
    content = tiny.record(true_groups=TRUTH, groups=groups, rounds=4, newcomers=[])
    content |= {"parameters": PARAMETERS["run"], "tree": []}
    rows = tiny.scores(CURVES[seed]) + participation(4, list(range(6)))
    rows += [
        (r, "client", c, "group", float(g if r > 1 else 0))
        for r in range(4)
        for c, g in enumerate(groups)
    ]
    return tiny.write(folder, content, rows, seconds)


@pytest.fixture
def known(tmp_path) -> pd.DataFrame:
    """Everything of two methods on one kind of clients: without a grouping, and with a profiler."""
    content = tiny.record(parameters=PARAMETERS["profiler"], groups=[0] * 6)
    profilers = {
        seed: tiny.write(tmp_path / f"w{seed}", content, participation(2, [0, 2, 5]), 12.0)
        for seed in (0, 1)
    }
    runs = {
        "plain": {0: write_run(tmp_path / "p0", 0, [0] * 6)},
        "split": {
            0: write_run(tmp_path / "s0", 0, [0, 0, 1, 2, 2, 2]),
            1: write_run(tmp_path / "s1", 1, TRUTH),
        },
        "network": profilers,
    }
    groupings = {
        0: tiny_groupings.write(tmp_path / "g0", TRUTH),
        1: tiny_groupings.write(tmp_path / "g1", TRUTH, np.eye(6, dtype=np.uint8)),
        2: tiny_groupings.write(tmp_path / "g2", TRUTH),
    }
    for folder in groupings.values():
        write_json(folder / records.COST, {"seconds": 3.0})
    encoder = tmp_path / "e"
    write_json(encoder / records.RECORD, {"parameters": {"encoder": 5, "decoder": 4}})
    write_json(encoder / records.COST, {"seconds": 9.0})
    rows = [("grouping", "g", "g", seed, str(folder)) for seed, folder in groupings.items()]
    others = index.build([*rows, ("encoder", "e", "e", 0, str(encoder))])
    return pd.concat([tiny.runs(runs), others])


ONCE = {"down": 1, "up": 1, "before_down": [], "before_up": []}


def cell(row: str, run: str, column: str = "here", grouping: str = "", **traffic) -> dict:
    about = {"column": column, "row": row, "run": run, "grouping": grouping, "encoder": ""}
    return about | {"profiler": "", "traffic": ONCE | traffic}


PLAIN = cell("fedavg", "plain")
SPLIT = cell("cfl", "split", down=3)
SHOT = cell("repa", "split", grouping="g", before_down=["network"], before_up=["signature"])
SHOT |= {"profiler": "network"}
COLUMNS = {"here": {"truth": True}, "nowhere": {"truth": False}}


# ---- Bytes --------------------------------------------------------------------------------------


def test_bytes_of_the_rounds_are_those_of_every_model_that_went_either_way(known):
    found = traffic.sent(SPLIT, known, 0)
    expected = 0
    for _ in range(4):
        for _ in range(6):
            expected += (3 + 1) * 11 * 4
    assert found == expected


def test_a_profiler_and_what_is_sent_after_it_count(known):
    found = traffic.sent(SHOT, known, 1)
    expected = 4 * 6 * 2 * 11 * 4  # the rounds
    for _ in range(2):
        for _ in (0, 2, 5):
            expected += 2 * 7 * 4  # those of the profiler, in which three clients took part
    for _ in range(6):
        expected += 7 * 4 + 3 * 4  # its network to all clients, three numbers from each
    assert found == expected


def test_an_encoder_is_sent_without_its_decoder(known):
    about = cell("flt", "plain", before_down=["encoder"]) | {"encoder": "e"}
    assert traffic.sent(about, known, 0) - traffic.sent(PLAIN, known, 0) == 6 * 5 * 4


def test_a_client_that_trains_alone_sends_nothing(known):
    assert traffic.sent(cell("local", "plain", down=0, up=0), known, 0) == 0


# ---- Measures of one method ---------------------------------------------------------------------


@pytest.mark.parametrize("clients", [1, 9, 10, 11, 40])
def test_the_worst_tenth_is_rounded_up(clients):
    values = np.random.default_rng(0).random(clients) * 100
    count = math.ceil(clients / 10)
    expected = sum(sorted(values.tolist())[:count]) / count
    assert matrix.worst_tenth(values) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("means", "expected"),
    [
        ([10, 50, 88.9, 89.1, 90, 90, 90, 90, 90], 6),
        ([10, 95, 90, 90, 90, 90, 90], 2),
        ([90, 90, 90], 0),
        ([0, 80, 80, 80, 80, 85, 85], 10),  # the mean of the last five is 82
        ([0, 80], 2),
    ],
)
def test_a_run_has_converged_when_it_is_within_a_point_of_its_end(means, expected):
    scores = pd.DataFrame({0: means, 1: means}, index=range(0, 2 * len(means), 2))
    assert matrix.converged(scores) == expected


# ---- Budgets ------------------------------------------------------------------------------------


def scores_of(means: dict[int, float]) -> pd.DataFrame:
    """Two clients, one ten points above the mean and one as much below."""
    return pd.DataFrame({0: means, 1: means}).add([10, -10])


@pytest.mark.parametrize(
    ("rounds", "expected"),
    [(60, [44, 48, 52, 56, 60]), (59, [40, 44, 48, 52, 56]), (math.inf, [60, 64, 68, 72, 76])],
)
def test_accuracy_of_a_budget_is_the_mean_over_the_last_five_tests(rounds, expected):
    scores = scores_of({now: now**2 / 100 for now in range(0, 80, 4)})
    mean = sum(now**2 / 100 for now in expected) / 5
    found = budgets.at_budget(scores, rounds)
    assert found.to_dict() == pytest.approx({0: mean + 10, 1: mean - 10})


def test_the_test_before_training_never_counts():
    found = budgets.at_budget(scores_of({0: 10.0, 4: 50.0, 8: 60.0}))
    assert found.mean() == pytest.approx(55)


@pytest.mark.parametrize(
    ("end", "expected"), [(240, [60, 120, 240]), (120, [60, 120]), (100, [60]), (4, [4])]
)
def test_budgets_are_those_that_a_run_has_had(end, expected):
    assert budgets.budgets_of(scores_of({0: 0.0, end: 50.0})) == expected


def test_gains_are_over_the_baseline_after_as_many_rounds(tmp_path):
    """Two seeds of one method, one of FedAvg, which a second setting does not have."""
    rng, folders, means = np.random.default_rng(0), {}, {}
    for name, seeds in (("base", 1), ("ours", 2)):
        for seed in range(seeds):
            by_round = {now: rng.random(6).tolist() for now in range(0, 124, 4)}
            content = tiny.record(true_groups=TRUTH, rounds=120)
            folder = tiny.write(tmp_path / f"{name}{seed}", content, tiny.scores(by_round))
            folders.setdefault(name, {})[seed] = folder
            for end in (60, 120):
                tests = [100 * sum(by_round[end - back]) / 6 for back in range(0, 20, 4)]
                means.setdefault((name, end), []).append(sum(tests) / 5)
    cells = [cell("fedavg", "base"), cell("cfl", "ours"), cell("ifca", "ours", "nowhere")]
    table = budgets.by_budget(cells, tiny.runs(folders), "fedavg")
    found = table.set_index(["setting", "method", "budget"])
    for end in (60, 120):
        (base,), ours = means["base", end], means["ours", end]
        expected = [sum(ours) / 2, ours[0] - base, 2]  # the gain is that of the common seed
        line = found.loc["here", "cfl", end]
        assert line[["accuracy", "gain", "seeds"]].tolist() == pytest.approx(expected)
        assert found.loc[("here", "fedavg", end), "gain"] == 0
        assert math.isnan(found.loc[("nowhere", "ifca", end), "gain"])
    assert len(table) == 6


# ---- The matrix ---------------------------------------------------------------------------------


@pytest.fixture
def table(known):
    cells = [PLAIN, SPLIT, SHOT, cell("absent", "missing"), cell("ifca", "split", "nowhere")]
    return matrix.matrix(cells, COLUMNS, known, "fedavg")


def line(table, row):
    return table.set_index("method").loc[row]


def test_what_was_not_computed_has_no_row(table):
    assert table["method"].tolist() == ["fedavg", "cfl", "repa", "ifca"]
    assert table["seeds"].tolist() == [1, 2, 2, 2]


def test_measures_are_means_over_seeds(table):
    ends = [
        [50 * (a + b) for a, b in zip(CURVES[seed][2], CURVES[seed][4], strict=True)]
        for seed in (0, 1)
    ]
    means = [sum(end) / 6 for end in ends]
    found = line(table, "cfl")
    assert found["accuracy"] == pytest.approx(sum(means) / 2)
    assert found["worst"] == pytest.approx((min(ends[0]) + min(ends[1])) / 2)
    spread = [
        sum((value - mean) ** 2 for value in end) / 6 for end, mean in zip(ends, means, strict=True)
    ]
    assert found["variance"] == pytest.approx(sum(spread) / 2)
    assert found["converged"] == (2 + 4) / 2
    # The first seed, which the baseline has, is equal to it.
    assert found["gain"] == 0
    assert found["megabytes"] == pytest.approx(4 * 6 * 4 * 11 * 4 / 6 / 1e6)
    assert line(table, "fedavg")["gain"] == 0


def test_agreement_is_that_of_the_groups_at_the_end(table):
    # [0 0 1 2 2 2] against [0 0 0 1 1 1]: 4 pairs together in both, 4 and 6 in either, 15 in all.
    by_hand = (4 - 4 * 6 / 15) / ((4 + 6) / 2 - 4 * 6 / 15)
    assert line(table, "cfl")["agreement"] == pytest.approx((by_hand + 1) / 2)
    assert line(table, "cfl")["groups"] == (3 + 2) / 2
    assert line(table, "fedavg")[["agreement", "groups", "trials"]].tolist() == [0, 1, 1]


def test_agreement_of_a_one_shot_method_is_that_of_all_its_groupings(table):
    found = line(table, "repa")
    assert found["agreement"] == pytest.approx((1 + 0 + 1) / 3)
    assert (found["groups"], found["trials"]) == (pytest.approx((2 + 6 + 2) / 3), 3)


def test_without_true_groups_there_is_no_agreement(table):
    assert math.isnan(line(table, "ifca")["agreement"])
    assert line(table, "ifca")["groups"] == 2.5


def test_without_a_baseline_there_is_no_gain(table):
    assert math.isnan(line(table, "ifca")["gain"])


def test_a_gain_and_its_spread_are_of_differences_within_a_seed(known, table, tmp_path):
    again = ("run", "plain", "plain", 1, write_run(tmp_path / "p1", 0, [0] * 6))
    both = pd.concat([known, index.build([again])], ignore_index=True)
    # Means over clients and over both tests, in %.
    means = [100 * sum(CURVES[seed][2] + CURVES[seed][4]) / 12 for seed in (0, 1)]
    gains = [means[0] - means[0], means[1] - means[0]]
    middle = sum(gains) / 2
    expected = math.sqrt(sum((gain - middle) ** 2 for gain in gains))
    found = matrix.matrix([PLAIN, SPLIT], COLUMNS, both, "fedavg")
    assert found["gain"].tolist() == pytest.approx([0, middle])
    assert found["spread"].tolist() == pytest.approx([0, expected])
    # Their only common seed is not enough.
    assert table["spread"].isna().all()


def test_a_grid_keeps_both_orders(table):
    found = matrix.grid(table, "groups", ["nowhere", "here"])
    assert found.index.tolist() == ["fedavg", "cfl", "repa", "ifca"]
    assert found.columns.tolist() == ["nowhere", "here"]
    assert found.loc["cfl", "here"] == 2.5
    assert math.isnan(found.loc["cfl", "nowhere"])


def test_history_tells_what_groups_there_were_in_every_round(known):
    history = matrix.over_rounds(SPLIT, known)
    found = history.set_index("round")
    assert found.index.tolist() == [0, 1, 2, 3, 4]
    assert found["groups"].tolist() == [1, 1, 2.5, 2.5, 2.5]
    assert found["agreement"].tolist()[:2] == [0, 0]
    by_hand = (4 - 4 * 6 / 15) / ((4 + 6) / 2 - 4 * 6 / 15)
    assert found["agreement"][4] == pytest.approx((by_hand + 1) / 2)
    tested = found["accuracy"].dropna()
    assert tested.index.tolist() == [0, 2, 4]
    assert tested[2] == pytest.approx(100 * (sum(CURVES[0][2]) / 6 + 0.3) / 2)
    of_seeds = 30, 100 * sum(CURVES[0][2]) / 6
    assert found.loc[2, ["least", "most"]].tolist() == pytest.approx(of_seeds)


def test_personal_models_at_the_end_are_no_groups_of_the_last_round(tmp_path):
    content = tiny.record(true_groups=TRUTH, groups=list(range(6)), rounds=2, newcomers=[])
    one = [(r, "client", c, "group", 0.0) for r in range(2) for c in range(6)]
    alone = [(r, "client", c, "group", float(c)) for r in range(2) for c in range(6)]
    for name, rows, groups in (("one", one, 1), ("alone", alone, 6)):
        made = tiny.write(tmp_path / name, content, tiny.scores(CURVES[1]) + rows)
        found = matrix.over_rounds(cell("cfl", name), tiny.runs({name: {0: made}}))
        assert found["groups"].dropna().tolist() == [groups] * 3


def test_history_holds_clients_that_never_took_part(tmp_path):
    content = tiny.record(true_groups=TRUTH, groups=TRUTH, rounds=1, newcomers=[])
    rows = tiny.scores(CURVES[1]) + [(0, "client", c, "group", 0.0) for c in (0, 1, 3)]
    runs = tiny.runs({"partly": {0: tiny.write(tmp_path / "r", content, rows)}})
    found = matrix.over_rounds(cell("cfl", "partly"), runs).set_index("round")
    assert found["groups"].tolist()[:2] == [1, 2]
    assert found["agreement"].tolist()[:2] == [0, 1]


def test_groups_found_before_training_are_those_of_the_grouping_in_every_round(known):
    found = matrix.over_rounds(SHOT, known)
    assert found["groups"].tolist() == [(2 + 6) / 2] * 5  # the true two, and each by itself
    assert found["agreement"].tolist() == [(1 + 0) / 2] * 5
    before = matrix.over_rounds(SPLIT, known)["accuracy"]
    pd.testing.assert_series_equal(found["accuracy"], before)


def test_the_record_of_a_run_is_not_touched(known):
    folder = index.folder(known, "run", "plain")
    before = read_json(folder / records.RECORD)
    traffic.sent(PLAIN, known, 0)
    assert read_json(folder / records.RECORD) == before
