"""What a claim names: cells become runs and groupings, and what is not there is one sentence."""

import re
from pathlib import Path

import pytest
from tiny_results import CONTENT, RUN, ledger_of

from clustered_fl.claims.binding import Bound, bind, function_of, section_of, variants
from clustered_fl.claims.names import Grouping, Run, Study
from clustered_fl.claims.verdicts import measure_of
from clustered_fl.errors import InputError
from clustered_fl.ledger.reading import load_ledger

SHARED = {key: RUN[key] for key in ("minutes", "dataset", "federation", "model", "training")}
SHARED |= {"rounds": 2, "seeds": {"demo": [0]}}
GROUPED = {"method": {"name": "flt"}, "minutes": {}, "seeds": {"demo": [0]}}
TABLE = {
    "all": SHARED,
    "columns": {"left": {"title": "Left"}, "right": {"title": "Right"}},
    "rows": {
        "one": {"title": "One", "method": {"name": "fedavg"}},
        "two": {"title": "Two", "method": {"name": "one_shot"}, "grouping": GROUPED},
        "aid": {"title": "Aid", "method": {"name": "oracle"}, "hidden": True},
    },
    "cells": {"right": {"one": None}},
}
LEDGER = ledger_of(CONTENT | {"tables": {"table": TABLE}})
COMMITTED = sorted((Path(__file__).parents[2] / "config" / "papers").glob("*.yaml"))


def target(
    evidence: object,
    run: Run = "",
    runs: list[Run] | dict[str, Run] = (),
    pairs: dict[str, tuple[Run, Run]] | None = None,
    shots: list[Grouping] | None = None,
    study: Study | None = None,
    label: str = "",
) -> dict[str, float]:
    """Has every form of argument that names something."""


def bound(**arguments) -> Bound:
    return bind({"name": "module.target", **arguments}, target, LEDGER)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("toy_run", "toy_run"),
        ("toy_sweep", "toy_sweep"),
        ("left.one", "toy_left_one"),
        ("left.aid", "toy_left_aid"),
        (["right.two", "toy_run", "left.two"], ["toy_right_two", "toy_run", "toy_left_two"]),
        (["left.*"], ["toy_left_one", "toy_left_two"]),
        (["*.one"], ["toy_left_one"]),
        (["*.aid"], ["toy_left_aid", "toy_right_aid"]),
        (["r*.t*", "left.one"], ["toy_right_two", "toy_left_one"]),
        ("left.*", ["toy_left_one", "toy_left_two"]),
        ({"a": "left.one", "b": "toy_run"}, {"a": "toy_left_one", "b": "toy_run"}),
    ],
)
def test_names_cells_and_patterns_become_runs(written, meant):
    """A pattern passes over rows that are hidden, unless it names the row."""
    assert bound(runs=written).arguments == {"runs": meant}


def test_a_cell_means_what_the_argument_is_of():
    """The same cell has a run and a grouping."""
    found = bound(runs=["left.two"], shots=["left.two"])
    assert found.arguments == {"runs": ["toy_left_two"], "shots": ["toy_groups_left_two"]}
    assert bound(shots=["*.*"]).needs["groupings"] == [
        "toy_groups_left_two",
        "toy_groups_right_two",
    ]


def test_a_claim_needs_all_that_its_arguments_name_once():
    pairs = {"a": ["left.one", "left.two"], "b": ["left.one", "right.aid"]}
    found = bound(run="toy_run", pairs=pairs, shots=["left.two"], study="toy_study", label="a.b")
    assert found.arguments["pairs"] == {
        "a": ["toy_left_one", "toy_left_two"],
        "b": ["toy_left_one", "toy_right_aid"],
    }
    assert found.arguments["label"] == "a.b"
    assert found.needs == {
        "runs": ["toy_run", "toy_left_one", "toy_left_two", "toy_right_aid"],
        "groupings": ["toy_groups_left_two"],
        "studies": ["toy_study"],
    }
    assert found.measured == [*found.needs["runs"], "toy_groups_left_two"]
    assert found.function == "module.target"


def test_what_is_left_out_needs_nothing():
    assert bound().needs == {"runs": [], "groupings": [], "studies": []}
    assert bound(shots=None).arguments == {"shots": None}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"run": "toy_rum"}, "'toy_rum' is none of the runs of the ledger"),
        ({"runs": ["toy_run", "toy_study"]}, "'toy_study' is none of the runs of the ledger"),
        ({"study": "toy_run"}, "'toy_run' is none of the studies of the ledger"),
        ({"shots": ["toy_run"]}, "'toy_run' is none of the groupings of the ledger"),
        ({"run": "right.one"}, "no cell 'right.one' has one of runs"),
        ({"runs": {"a": "up.one"}}, "no cell 'up.one' has one of runs"),
        ({"shots": ["*.one"]}, "no cell '*.one' has one of groupings"),
        ({"study": "left.one"}, "'left.one' is none of the studies of the ledger"),
    ],
)
def test_names_that_mean_nothing_are_one_sentence(arguments, sentence):
    with pytest.raises(InputError, match=f"^{re.escape(sentence)}$"):
        bound(**arguments)


@pytest.mark.parametrize(
    ("name", "found"),
    [("lead", ("measures", "lead")), ("cfl.ends", ("cfl", "ends"))],
)
def test_a_measure_is_a_general_one_or_of_a_module(name, found):
    assert function_of({"name": name, "of": "x"}) == found


@pytest.mark.parametrize("measure", [{}, {"name": ""}, {"name": None}, {"of": "left.one"}])
def test_a_measure_without_a_name_is_one_sentence(measure):
    with pytest.raises(InputError, match="^a measure needs a name$"):
        function_of(measure)


@pytest.mark.parametrize(
    ("annotation", "section"),
    [
        (Run, "runs"),
        (list[Grouping], "groupings"),
        (dict[str, tuple[Run, Run]], "runs"),
        (Study | None, "studies"),
        (list[str], None),
        (str, None),
    ],
)
def test_an_annotation_says_whose_names_an_argument_takes(annotation, section):
    assert section_of(annotation) == section


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.stem)
def test_every_committed_claim_needs_something_that_is_computed(path):
    ledger = load_ledger(path)
    needs = {
        name: bind(claim.measure, measure_of(claim), ledger).needs
        for name, claim in ledger.claims.items()
    }
    assert [name for name, found in needs.items() if not any(found.values())] == []


# ---- Unstated settings ---------------------------------------------------------------------------

MEASURE = {
    "name": "flt.margins",
    "of": ["left.one", "*.one", "toy_run"],
    "pairs": {"one": ["right.one", "right.two"]},
    "share": 0.5,
}


def varied(changes: dict) -> dict:
    """The measure with one other value of a setting."""
    claim = next(iter(LEDGER.claims.values()))
    claim = claim.model_copy(update={"measure": MEASURE, "unstated": {"size": {"5": changes}}})
    found = {setting: each.measure for setting, each in variants(claim).items()}
    assert list(found) == ["", "size = 5"]
    assert found[""] == MEASURE
    return found["size = 5"]


def test_another_value_replaces_arguments():
    changes = {"share": 0.2, "of": ["left.two"]}
    assert varied(changes) == MEASURE | changes


def test_another_value_replaces_rows_in_every_cell_and_nothing_else():
    pairs = {"one": ["right.aid", "right.two"]}
    expected = MEASURE | {"of": ["left.aid", "*.aid", "toy_run"], "pairs": pairs}
    assert varied({"rows": {"one": "aid", "margins": "two", "toy_run": "two"}}) == expected


def test_arguments_are_taken_as_they_are_beside_rows():
    found = varied({"rows": {"two": "aid"}, "of": ["left.two"]})
    assert found == MEASURE | {"of": ["left.two"], "pairs": {"one": ["right.one", "right.aid"]}}


@pytest.mark.parametrize(
    "changes", [{}, {"share": 0.5}, {"rows": {"absent": "two"}}, {"shown": ["left.two"]}]
)
def test_another_value_must_change_something(changes):
    with pytest.raises(InputError, match="^unstated size = 5 changes nothing in the measure$"):
        varied(changes)


def test_rows_must_be_a_mapping():
    with pytest.raises(InputError, match=r"^rows must give a row for .*, not \['one'\]$"):
        varied({"rows": ["one"]})
