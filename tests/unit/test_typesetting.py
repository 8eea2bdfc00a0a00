"""Numbers as readers see them."""

import numpy as np
import pytest

from clustered_fl.figures import typesetting


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("-14.69", "−14.69"),
        ("+19.71", "+19.71"),
        ("+0.00", "0.00"),
        ("-0.00", "0.00"),
        ("+0.05", "+0.05"),
        ("71.40", "71.40"),
        ("867633", "867,633"),
        ("-1234567.25", "−1,234,567.25"),
        ("1e-05", "1e-05"),
        ("-inf", "−inf"),
        ("15.06%", "15.06%"),
        ("lead >= -1", "lead >= −1"),
        ("-0.50 to 0.25 at the first split", "−0.50 to 0.25 at the first split"),
        # Hyphens of words, ranges and dates are none of a number.
        ("CFL-9 in MNIST-1 from 2020-10-11", "CFL-9 in MNIST-1 from 2020-10-11"),
        ("federated-averaging", "federated-averaging"),
        ("200000 rows", "200000 rows"),
    ],
)
def test_signs_are_those_of_numbers(text, expected):
    assert typesetting.typeset(text) == expected
    assert typesetting.typeset(expected) == expected


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (636.0, "636"),
        (-0.5, "−0.5"),
        (1 / 3, "0.333333"),
        (np.float64(1908.1), "1,908.1"),
        (np.int64(867633), "867,633"),
        (float("nan"), "–"),
        (float("inf"), "inf"),
    ],
)
def test_numbers_have_no_needless_digits(value, text):
    assert typesetting.number(value) == text


def test_columns_of_numbers_only_are_set_flush_right():
    rows = [["name", "ours", "alike"], ["REPA", "0.5", "0.29 (0.23)"], ["WD", "–", "–"]]
    assert typesetting.number_columns(rows) == [False, True, False]
    assert typesetting.number_columns(rows[:1]) == [False, False, False]
    assert typesetting.number_columns([["a", "b"], ["−1.5", "867,633"], ["+2%", "1e-05"]]) == [
        True,
        True,
    ]
