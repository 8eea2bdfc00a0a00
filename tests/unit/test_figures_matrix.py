"""Drawings of all methods on all kinds of clients."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from clustered_fl import figures
from clustered_fl.figures.ground import matrix

TITLES = {"fedavg": "FedAvg", "local": "Local", "mine": "Mine"}


@pytest.fixture
def axis():
    drawn, axes = figures.panels(1, 1)
    yield axes[0, 0]
    plt.close(drawn)


def test_every_method_looks_different():
    """Those that the project does not know too, and there may be many of them."""
    names = [*figures.METHODS, *(f"mine{number}" for number in range(7))]
    found = matrix.styles(names)
    assert list(found) == names
    assert len({tuple(style.values()) for style in found.values()}) == len(names)
    for name, colour in figures.METHODS.items():
        assert found[name] == {"color": colour, "linestyle": "solid"}


def texts(axis) -> list[str]:
    return [text.get_text() for text in axis.texts]


def test_cells_have_their_numbers_and_a_dash_where_there_is_none(axis):
    grid = pd.DataFrame({"a": [0.5, np.nan], "b": [-0.25, 1.0]}, index=["fedavg", "mine"])
    matrix.draw_grid(axis, grid, "agreement", TITLES, {"a": "one", "b": "two"})
    assert texts(axis) == ["0.50", "−0.25", "–", "1.00"]
    assert [label.get_text() for label in axis.get_yticklabels()] == ["FedAvg", "Mine"]
    assert [label.get_text() for label in axis.get_xticklabels()] == ["one", "two"]


@pytest.mark.parametrize(("value", "text"), [(3.14, "+3.1"), (-2.06, "−2.1"), (-0.01, "+0.0")])
def test_a_gain_has_its_sign(axis, value, text):
    grid = pd.DataFrame({"a": [value]}, index=["mine"])
    matrix.draw_grid(axis, grid, "gain", TITLES, {"a": "one"})
    assert texts(axis) == [text]


def strip(axis, log: bool) -> dict[str, tuple[list[float], float]]:
    """Method -> its dots and its bar, as drawn."""
    rows = [("fedavg", 1.0), ("fedavg", 4.0), ("fedavg", 2.0), ("local", 0.0), ("mine", 3.0)]
    table = pd.DataFrame([*rows, ("mine", np.nan)], columns=["contender", "cost"])
    matrix.draw_strip(axis, table, "cost", TITLES, log=log)
    found = {}
    for row, name in enumerate(TITLES):
        lines = [line for line in axis.lines if round(np.mean(line.get_ydata())) == row]
        dots, *bars = (line.get_xdata().tolist() for line in lines if len(line.get_xdata()))
        found[name] = dots, bars[0][0]
    return found


def test_a_strip_has_a_dot_per_kind_of_clients_and_a_bar_at_the_median(axis):
    assert strip(axis, False) == {
        "fedavg": ([1, 4, 2], 2),
        "local": ([0], 0),
        "mine": ([3], 3),
    }
    assert texts(axis) == []


def test_zero_stands_at_the_margin_of_a_logarithmic_axis(axis):
    table = pd.DataFrame({"contender": ["fedavg", "local"], "cost": [10.0, 0.0]})
    matrix.draw_strip(axis, table, "cost", TITLES, log=True)
    assert texts(axis) == ["0"]
    assert axis.get_xscale() == "log"


def test_costs_are_compared_on_the_same_clients():
    rows = [("a", "fedavg", 2.0), ("a", "mine", 6.0), ("b", "fedavg", 5.0), ("b", "mine", 1.0)]
    table = pd.DataFrame([*rows, ("c", "mine", 1.0)], columns=["ground", "contender", "cost"])
    found = matrix.compared(table, "cost", "fedavg").tolist()
    assert found[:4] == [1, 3, 1, 0.2]
    assert np.isnan(found[4])


def test_a_curve_leaves_out_rounds_without_a_test(axis):
    history = pd.DataFrame(
        {"contender": "mine", "round": [0, 1, 2], "accuracy": [10.0, np.nan, 30.0]}
    )
    matrix.draw_history(axis, history, "accuracy", {"mine": "Mine"})
    (line,) = axis.lines
    assert line.get_xdata().tolist() == [0, 2]
    assert line.get_label() == "Mine"
