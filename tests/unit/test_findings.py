"""What a step says that it has found, and the summary of verdicts at the end of a run."""

import numpy as np
import pandas as pd
import pytest

from clustered_fl.claims.summary import summary
from clustered_fl.data import dataset as datasets
from clustered_fl.data.federation import Federation
from clustered_fl.jobs import findings
from clustered_fl.records import seal


def federation(sizes: list[int], groups: list[int], newcomers: int = 0) -> Federation:
    rows = tuple(np.arange(size) for size in sizes)
    maps, tests = np.tile(np.arange(2), (len(sizes), 1)), np.zeros(len(sizes), int)
    return Federation(rows, (np.arange(3),), tests, maps, np.array(groups), newcomers)


@pytest.mark.parametrize(
    ("sizes", "groups", "newcomers", "expected"),
    [
        ([5, 5], [0, 0], 0, "2 clients, 5 training rows each"),
        ([5, 1200, 7], [0, 1, 0], 0, "3 clients in 2 groups, 5 to 1,200 training rows each"),
        ([5, 5, 5], [0, 0, 1], 1, "2 clients, 5 training rows each"),
    ],
)
def test_a_federation(sizes, groups, newcomers, expected):
    assert findings.of_federation(federation(sizes, groups, newcomers)) == expected


def test_a_dataset():
    x = np.zeros((1500, 1, 2, 2), np.uint8)
    found = datasets.build("mnist", "mirror", x, np.zeros(1500, int), 1200, ("a",))
    assert findings.of_dataset(found) == "1,200 training and 300 test rows, mirror"


@pytest.mark.parametrize(
    ("kind", "record", "expected"),
    [
        (
            "run",
            {"metric": "accuracy", "score": 0.51249, "rounds": 9, "groups": [0, 1, 1]},
            "accuracy 0.512 after 9 rounds, 2 groups",
        ),
        (
            "run",
            {"metric": "perplexity", "score": 113.84, "rounds": 16, "groups": [4, 4]},
            "perplexity 114 after 16 rounds, 1 group",
        ),
        (
            "grouping",
            {"score": 0.75, "groups": [0, 1, 1], "true_groups": [0, 1, 0]},
            "3 clients in 2 groups, adjusted Rand index 0.75",
        ),
        # Without true groups, agreement would reward one group of all clients.
        (
            "grouping",
            {"score": 1.0, "groups": [0, 0], "true_groups": [0, 0]},
            "2 clients in 1 group",
        ),
        ("encoder", {"score": 0.01234}, "mean squared error 0.0123 on test images"),
        ("study", {"tables": ["a", "b"]}, "2 tables: a, b"),
        ("study", {"tables": ["a"]}, "table a"),
    ],
)
def test_a_record(tmp_path, kind, record, expected):
    seal.write(tmp_path, record, {}, ())
    assert getattr(findings, f"of_{kind}")(tmp_path) == expected


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        (
            ["CONFIRMED", "BY CONSTRUCTION", "REFUTED", "DEMO ONLY", "DEMO ONLY"],
            "CFL: 3 of 5 claims checked without data, 1 hold, 1 by construction (2 need real data)",
        ),
        (
            ["CONFIRMED", "INCONCLUSIVE", "DEPENDS", "REDUCED", "NOT RUN"],
            "CFL: 3 of 5 claims checked, 1 hold (1 reduced, 1 not run)",
        ),
        ([], "CFL: 0 of 0 claims checked, 0 hold"),
    ],
)
def test_verdicts_in_one_line(verdicts, expected):
    assert summary("CFL", pd.DataFrame({"verdict": verdicts})) == expected
