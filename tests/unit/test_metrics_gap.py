"""Separation gaps of many runs: read, cut at one round, first positive, certificates."""

import math

import pandas as pd
import pytest
from tiny_records import record, rows, runs, write

from clustered_fl.metrics.cfl import gap


def federated(samples: int) -> dict:
    config = record()["config"] | {"federation": {"clients": 6, "samples": samples}}
    return record(config=config)


@pytest.fixture
def known(tmp_path) -> pd.DataFrame:
    """Two sizes; the larger ran longer, the smaller has two seeds."""
    curves = {
        ("few", 0, 10): ({0: -9, 1: -0.5, 2: -0.2}, {1: -0.6, 2: -0.3}),
        ("few", 1, 10): ({0: -9, 1: -0.3, 2: 0.4}, {1: -0.6, 2: -0.5}),
        ("many", 0, 50): ({0: -9, 1: 0.1, 2: 0.2, 3: 0.3}, {2: 0.1, 3: 0.2}),
    }
    found: dict = {}
    for (run, seed, samples), (update, gradient) in curves.items():
        gaps = {"gap_update": update, "gap_gradient": gradient}
        correct = {name.replace("gap", "correct"): dict.fromkeys(gaps[name], 1.0) for name in gaps}
        measured = rows(**gaps, **correct, size={0: 6.0})
        folder = write(tmp_path / run / f"seed{seed}", federated(samples), measured)
        found.setdefault(run, {})[seed] = folder
    return runs(found)


def test_gaps_are_read_from_the_first_round_on(known):
    table = gap.by_round(known)
    assert table["round"].min() == 1
    assert len(table) == 2 + 2 + 2 + 2 + 3 + 2
    assert set(table["samples"]) == {10, 50}
    few = table[(table["samples"] == 10) & (table["similarity"] == "update")]
    assert few["gap"].tolist() == [-0.5, -0.2, -0.3, 0.4]


def test_runs_of_different_length_are_cut_at_one_round(known):
    table = gap.at_last_gradient(gap.by_round(known))
    assert set(table["round"]) == {2}
    assert len(table) == 6


def test_first_positive_is_of_the_mean_over_seeds(known):
    table = gap.at_last_gradient(gap.by_round(known))
    assert gap.first_positive(table, "samples").to_dict() == {"update": 10, "gradient": 50}


def test_a_gap_that_never_opens_is_absent():
    table = pd.DataFrame({"similarity": ["update", "gradient"], "round": 1, "gap": [0.0, 0.1]})
    assert gap.first_positive(table, "round").to_dict() == {"gradient": 1}


@pytest.mark.parametrize(
    ("update", "gradient", "later"),
    [
        ([-1, 1, 1], [-1, 1, 1], 0),
        ([1, 1, 1], [-1, -1, 1], -2),
        ([-1, -1, 1], [1, 1, 1], 2),
        ([-1, -1, -1], [-1, 1, 1], math.inf),
        ([-1, 1, -1], [-1, -1, -1], -math.inf),
        ([-1, -1, -1], [-1, -1, -1], 0),
    ],
)
def test_a_delay_is_that_of_the_first_positive_gap(update, gradient, later):
    gaps = pd.concat(
        pd.DataFrame({"similarity": name, "round": [1, 2, 3], "gap": values})
        for name, values in (("update", update), ("gradient", gradient))
    )
    assert gap.delay(gaps, "round") == later


def test_certificates_are_counted_per_group_and_round():
    values = {("gap_update", 1): 0.1, ("correct_update", 1): 1.0}
    values |= {("gap_update", 2): -0.1, ("correct_update", 2): 1.0}
    values |= {("gap_update", 3): -0.1, ("correct_update", 3): 0.0}
    values |= {("gap_update", 4): 0.2, ("correct_update", 4): 0.0}
    frame = pd.DataFrame(
        [("r", 0, round_, 0, metric, v) for (metric, round_), v in values.items()],
        columns=["run", "seed", "round", "member", "metric", "value"],
    )
    assert gap.certificates(frame) == {"positive": 2, "correct": 1, "uncertified": 1}


def test_the_last_common_round_counts_or_else_each_run_s_own_last():
    """Ten samples were measured after rounds 1 to 3, fifty after rounds 2 to 4."""
    places = [
        (n, 0, now, s)
        for n, a in ((10, 1), (50, 2))
        for now in range(a, a + 3)
        for s in ("update", "gradient")
    ]
    table = pd.DataFrame(places, columns=["samples", "seed", "round", "similarity"])
    assert set(gap.at_last_gradient(table)["round"]) == {3}
    apart = table[(table["samples"] == 10) | (table["round"] > 3)]
    found = gap.at_last_gradient(apart)[["samples", "round"]].drop_duplicates()
    assert sorted(map(tuple, found.to_numpy().tolist())) == [(10, 3), (50, 4)]
