"""FLT's Theorem 1: the errors that the bounds are compared with, and the comparison itself."""

import math

import numpy as np
import pytest

from clustered_fl.randomness import generator
from clustered_fl.theory.flt import clustering_error as theorem_1
from clustered_fl.theory.flt.clustering_error import (
    centre_distance,
    clustering_error,
    confusion,
    interval,
    mixture,
    single_mean,
    uneven_labels,
)

HOLDS = ("theorem_1_corrected", "theorem_1_corrected_simulated")
FAILS = ("theorem_1_printed", "theorem_1_printed_simulated", "theorem_1_average_error")


def q_function(x):
    return math.erfc(x / math.sqrt(2)) / 2


def inverse_q(error):
    low, high = 0.0, 40.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if q_function(middle) > error else (low, middle)
    return low


def small_study(seed=0):
    return clustering_error(
        seed, trials=500, samples_max=16, clients=4, federations=30, mixture_samples=(1, 4, 16)
    )


@pytest.fixture(scope="module")
def study():
    return small_study()


def test_every_check_is_expected_to_hold_or_to_fail(study):
    assert sorted(study["checks"]["check"]) == sorted(HOLDS + FAILS)


@pytest.mark.parametrize("check", HOLDS)
def test_true_statement_is_not_violated(study, check):
    row = study["checks"].set_index("check").loc[check]
    assert row.trials > 0
    assert row.violations == 0
    assert row.value < 0


@pytest.mark.parametrize("check", FAILS)
def test_false_statement_is_violated(study, check):
    row = study["checks"].set_index("check").loc[check]
    assert 0 < row.violations <= row.trials


def test_printed_bound_fails_for_eight_samples_at_every_error_rate(study):
    enough = study["checks"].set_index("check").loc["theorem_1_printed", "value"]
    assert enough == 7
    single = study["single"].query("samples >= @enough")
    assert (single["exact"] > single["printed"]).all()
    last = study["single"].query("samples == @enough - 1")
    assert not (last["exact"] > last["printed"]).all()


@pytest.mark.parametrize(("samples", "error_rate"), [(1, 0.3), (4, 0.3), (8, 0.05), (16, 0.4)])
def test_bounds_twin(study, samples, error_rate):
    row = study["single"].set_index(["samples", "error_rate"]).loc[(samples, error_rate)]
    q = inverse_q(error_rate)
    error = q_function(math.sqrt(samples) * q)
    printed = math.exp(-((samples * q) ** 2) / 2)
    assert row.exact == pytest.approx(error)
    assert row.printed == pytest.approx(printed)
    assert row.corrected == pytest.approx(math.exp(-samples * q * q / 2))
    assert row.log10_excess == pytest.approx(math.log10(error / printed))


def test_four_samples_are_enough_against_the_printed_bound(study):
    row = study["single"].set_index(["samples", "error_rate"]).loc[(4, 0.3)]
    assert (round(row.exact, 3), round(row.printed, 3)) == (0.147, 0.111)


def test_single_mean_twin():
    table = single_mean(generator(3, "x"), 50, 6, (0.1, 0.3))
    noise = generator(3, "x").standard_normal((50, 6))
    for row in table.itertuples():
        q = inverse_q(row.error_rate)
        wrong = sum(sum(draw[: row.samples]) / row.samples > q for draw in noise)
        assert row.simulated == pytest.approx(wrong / 50)


def binomial_tail(wrong, trials, share):
    """Probability of at least `wrong` errors."""
    terms = range(wrong, trials + 1)
    return sum(math.comb(trials, k) * share**k * (1 - share) ** (trials - k) for k in terms)


@pytest.mark.parametrize("wrong", [1, 7, 29])
def test_interval_twin(wrong):
    low, high = interval(wrong, 30)
    tail = (1 - theorem_1.CONFIDENCE) / 2
    assert binomial_tail(wrong, 30, low) == pytest.approx(tail, rel=1e-6)
    assert 1 - binomial_tail(wrong + 1, 30, high) == pytest.approx(tail, rel=1e-6)


def test_interval_at_its_ends():
    low, high = interval(np.array([0, 30]), 30)
    assert low[0] == 0
    assert high[1] == 1
    assert 0 < high[0] < 1
    assert 0 < low[1] < 1


@pytest.mark.parametrize(("distance", "labels"), [(0.5, 2), (2.0, 3), (4.0, 10)])
def test_confusion_twin(distance, labels):
    width, places = 0.001, np.arange(-12, 12, 0.001)
    normal = np.exp(-(places**2) / 2) / math.sqrt(2 * math.pi)
    below = np.array([1 - q_function(place + distance) for place in places])
    expected = 1 - (normal * below ** (labels - 1)).sum() * width
    assert confusion(distance, labels) == pytest.approx(expected, rel=1e-6)


def test_confusion_of_two_labels_is_one_border():
    assert confusion(3.0, 2) == pytest.approx(q_function(3.0 / math.sqrt(2)))
    # Beyond what a difference from 1 could resolve.
    assert confusion(17.0, 2) == pytest.approx(q_function(17.0 / math.sqrt(2)), rel=1e-6)


@pytest.mark.parametrize("labels", [2, 10])
def test_centres_are_as_far_as_the_error_says(labels):
    assert confusion(centre_distance(0.2, labels), labels) == pytest.approx(0.2)


def test_mixture_twin():
    """The same noise, with centres, distances and assignments written out."""
    found = mixture(generator(1, "x"), 20, 3, (3, 5), 0.2, 2)
    noise = generator(1, "x").standard_normal((20, 3, 3, 5)) / math.sqrt(2)
    centres = np.eye(5)[:3] * centre_distance(0.2, 3)
    wrong, federations_wrong = 0, 0
    for federation in noise:
        before = wrong
        for client in federation:
            for label in range(3):
                mean = centres[label] + client[label]
                distances = [np.linalg.norm(mean - centre) for centre in centres]
                wrong += int(np.argmin(distances)) != label
        federations_wrong += wrong > before
    assert found["simulated"] == pytest.approx(wrong / (20 * 3 * 3))
    assert found["simulated_any"] == pytest.approx(federations_wrong / 20)
    assert 0 < found["simulated"] < found["simulated_any"]
    q = inverse_q(0.2)
    assert found["corrected"] == pytest.approx(3 * 3 * 5 * math.exp(-2 * q * q / 2))
    assert found["printed"] == pytest.approx(3 * 3 * 5 * math.exp(-((2 * q) ** 2) / 2))
    assert found["exact_any"] == pytest.approx(1 - (1 - found["exact"]) ** 9)


def test_exact_error_is_that_of_samples_drawn_one_by_one():
    random, samples, labels = generator(2, "x"), 3, 4
    distance = centre_distance(0.3, labels)
    points = distance * np.eye(labels) + random.standard_normal((4000, samples, labels, labels))
    wrong = points.mean(axis=1).argmax(axis=2) != np.arange(labels)
    low, high = interval(wrong.sum(), wrong.size)
    assert low < mixture(generator(0, "x"), 1, 1, (labels, labels), 0.3, samples)["exact"] < high
    one = points[:, 0].argmax(axis=2) != np.arange(labels)
    assert one.mean() == pytest.approx(0.3, abs=0.02)


def test_simulation_is_near_the_exact_error(study):
    mixed = study["mixture"]
    assert ((mixed["low"] <= mixed["exact"]) & (mixed["exact"] <= mixed["high"])).all()
    single = study["single"]
    assert ((single["low"] <= single["exact"]) & (single["exact"] <= single["high"])).all()


def test_uneven_labels_twin():
    table = uneven_labels(8, clients=2, labels=5, dimension=6).set_index("samples")
    q, average = inverse_q(0.3), inverse_q(0.3 * 2 / 5)
    close = q_function(math.sqrt(8) * q)
    assert table.loc[8, "exact"] == pytest.approx(close * 2 / 5)
    assert table.loc[8, "exact_any"] == pytest.approx(1 - (1 - close) ** 4)
    assert table.loc[8, "average"] == pytest.approx(60 * math.exp(-8 * average**2 / 2))
    assert table.loc[8, "worst"] == pytest.approx(60 * math.exp(-8 * q * q / 2))
    assert (table["exact_any"] < table["worst"]).all()


def test_check_notices_a_bound_that_is_too_low(monkeypatch):
    lower = theorem_1.log_printed
    monkeypatch.setattr(theorem_1, "log_corrected", lower)
    checks = small_study()["checks"].set_index("check")
    assert (checks.loc[list(HOLDS), "violations"] > 0).all()


def test_draws_depend_on_the_seed_only(study):
    again, other = small_study(), small_study(1)
    assert all(study[name].equals(again[name]) for name in study)
    assert not study["mixture"].equals(other["mixture"])
    assert not study["single"].equals(other["single"])
