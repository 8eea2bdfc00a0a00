"""How much seeds differ, against the definition."""

from importlib import import_module
from pathlib import Path

import pytest

from clustered_fl.claims.judging import Estimate

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def between_seeds(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    return import_module("between_seeds")


def test_a_ratio_is_that_of_the_difference_to_its_binomial_error(between_seeds):
    """Differences 1, 3 and 5 have a standard deviation of 2; their error is 5."""
    first = {seed: Estimate(90 + 2 * seed, 3) for seed in range(3)}
    second = {seed: Estimate(89, 4) for seed in range(4)}
    assert between_seeds.ratio(first, second) == pytest.approx(2 / 5)


def test_two_seeds_and_numbers_without_an_error_give_no_ratio(between_seeds):
    first = {seed: Estimate(90, 0) for seed in range(3)}
    assert between_seeds.ratio(first, {0: Estimate(1, 1), 1: Estimate(2, 1)}) is None
    assert between_seeds.ratio(first, first) is None
