"""Verdicts follow the rule that is printed beside them, and say when there is nothing to judge."""

import math
from pathlib import Path

import pytest
import tiny_records as tiny
from hypothesis import given
from hypothesis import strategies as st

from clustered_fl.claims.evidence import Evidence, RunEvidence
from clustered_fl.claims.papers import predicates_of
from clustered_fl.claims.predicates import Predicate, Predicates, is_within
from clustered_fl.claims.verdicts import (
    COLUMNS,
    VERDICTS,
    check_complete,
    evaluate,
    judge,
    mean_of,
    text_of,
)
from clustered_fl.errors import InputError
from clustered_fl.files import write_json
from clustered_fl.schema import Grouping, Ledger

POSITIVE = Predicate("CFL-X", {"x": "> 0"}, lambda evidence: {})


def measured(*values: float) -> list[dict[str, float]]:
    return [{"x": value} for value in values]


# ---- The rule -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ([1], "CONFIRMED"),
        ([-1], "REFUTED"),
        ([1, 2, 3, 4, -1], "CONFIRMED"),
        ([-1, -2, -3, -4, 1], "REFUTED"),
        ([1, 2, 3, -1, -1], "INCONCLUSIVE"),
        ([-1, -2, -3, 1, 1], "INCONCLUSIVE"),
        ([1, 2, -1], "INCONCLUSIVE"),
        ([1, 1, 1, 1, -9], "INCONCLUSIVE"),
        ([-1, -1, -1, -1, 9], "INCONCLUSIVE"),
        ([math.nan], "INCONCLUSIVE"),
        ([1, 1, 1, 1, math.nan], "INCONCLUSIVE"),
        ([-1, math.nan], "INCONCLUSIVE"),
        ([math.inf], "CONFIRMED"),
        ([-math.inf, -1], "REFUTED"),
        ([math.inf, -math.inf], "INCONCLUSIVE"),
        ([0], "REFUTED"),
    ],
)
def test_verdict_on_hypothetical_measurements(values, verdict):
    assert judge(POSITIVE, measured(*values)) == verdict


def literal_verdict(values: list[float]) -> str:
    """The rule in whole numbers: the mean and four seeds in five agree, or the claim is open."""
    mean_holds = sum(values) > 0
    true = sum(value > 0 for value in values)
    false = len(values) - true
    if mean_holds and 5 * true >= 4 * len(values):
        return "CONFIRMED"
    return "REFUTED" if not mean_holds and 5 * false >= 4 * len(values) else "INCONCLUSIVE"


@given(values=st.lists(st.integers(-8, 8), min_size=1, max_size=30))
def test_verdict_equals_the_rule_counted_in_whole_numbers(values):
    assert judge(POSITIVE, measured(*values)) == literal_verdict(values)


def test_one_number_that_does_not_exist_leaves_the_claim_open():
    both = Predicate("CFL-X", {"x": "> 0"}, lambda evidence: {})
    assert judge(both, [{"x": 1.0, "beside": math.nan}]) == "INCONCLUSIVE"


def test_text_has_means_and_ranges():
    assert text_of(measured(0.123456)) == "x 0.123"
    assert text_of([{"a": 1.0, "b": 2.0}, {"a": 3.0, "b": 2.0}]) == "a 2 (1 to 3); b 2"
    assert text_of(measured(math.nan)) == "x nan"


@given(values=st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=6))
def test_the_mean_that_is_judged_is_the_mean_that_is_shown(values):
    assert text_of(measured(*values)).startswith(f"x {mean_of(measured(*values))['x']:.3g}")


@pytest.mark.parametrize(
    ("bound", "inside", "outside"),
    [
        ("> 0", [1e-9, math.inf], [0, -1]),
        (">= 0.5", [0.5, 1], [0.499]),
        ("< 1e-3", [0, -5], [1e-3]),
        ("<= -2", [-2], [-1.9]),
        ("= 4", [4.0], [3.999, 5]),
        (">= 0.15 and <= 0.3", [0.15, 0.2, 0.3], [0.14, 0.31]),
    ],
)
def test_bounds_mean_what_they_say(bound, inside, outside):
    assert all(is_within(value, bound) for value in inside)
    assert not any(is_within(value, bound) for value in [*outside, math.nan])


@pytest.mark.parametrize("bound", ["> zero", "!= 3", "positive", "> 0 or < -1", ""])
def test_bounds_that_mean_nothing_are_refused(bound):
    with pytest.raises((ValueError, KeyError)):
        is_within(1.0, bound)


def test_all_bounds_must_hold_and_the_reader_sees_them():
    both = Predicate("CFL-X", {"a": "> 0", "b": "= 1"}, lambda evidence: {})
    assert both.holds({"a": 1.0, "b": 1.0, "c": -9.0})
    assert not both.holds({"a": 1.0, "b": 2.0})
    assert both.text == "a > 0; b = 1"


# ---- From a ledger to rows ----------------------------------------------------------------------

RUN = {
    "purpose": "to test",
    "expected": "nothing",
    "minutes": {"demo": 1},
    "dataset": "mnist",
    "federation": {"kind": "congruent_pair"},
    "model": {"name": "small_conv_net"},
    "training": {},
    "method": {"name": "fedavg"},
    "rounds": 1,
    "seeds": {"demo": [0]},
}
ARTEFACT = {
    "kind": "figure",
    "title": "t",
    "caption": "c",
    "published": "p",
    "where": "w",
    "notebook": "n",
}


def ledger(**claims: dict) -> Ledger:
    parts = {"artefact": "fig", "statement": "s", "published": "p", "where": "w", "note": "n"}
    return Ledger(
        paper="cfl",
        title="t",
        authors="a",
        versions=[],
        runs={"one": RUN, "two": RUN},
        studies={"toy": {"purpose": "p", "function": "f.g"}},
        artefacts={"fig": ARTEFACT},
        claims={name: parts | claim for name, claim in claims.items()},
    )


def score_of(family: str):
    """Measures the last mean score of a family's only run."""
    return lambda evidence: {"score": float(evidence.run(family).scores().iloc[-1].mean())}


def predicates(**measures) -> dict[str, Predicate]:
    return {
        name: Predicate(name, {"score": "> 0.5"}, measure) for name, measure in measures.items()
    }


@pytest.fixture
def folder_of(tmp_path):
    def folder_of(run: str, seed: int, score: float) -> str:
        folder = tmp_path / run / f"seed{seed}"
        return tiny.write(folder, tiny.record(), tiny.scores({0: [0.0], 4: [score]}))

    return folder_of


def row(claims: Ledger, tests, folders, studies=None, scale="desktop", source="mirror") -> dict:
    table = evaluate(claims, tests, folders, studies or {}, scale, source)
    assert list(table.columns) == list(COLUMNS)
    (found,) = table.to_dict("records")
    assert found["verdict"] in VERDICTS
    return found


def test_a_row_says_what_was_claimed_measured_and_on_what(folder_of):
    folders = {"one": {"one": {seed: folder_of("one", seed, 0.6 + seed / 10) for seed in range(3)}}}
    found = row(ledger(A={"runs": ["one"]}), predicates(A=score_of("one")), folders)
    assert found == {
        "claim": "A",
        "paper": "cfl",
        "artefact": "fig",
        "statement": "s",
        "published": "p",
        "measured": "score 0.7 (0.6 to 0.8)",
        "holds_if": "score > 0.5",
        "seeds": 3,
        "scale": "desktop",
        "source": "mirror",
        "verdict": "CONFIRMED",
        "note": "n",
    }


def test_seeds_may_be_text_after_a_trip_through_json(folder_of):
    folders = {"one": {"one": {"0": folder_of("one", 0, 0.2)}}}
    found = row(ledger(A={"runs": ["one"]}), predicates(A=score_of("one")), folders)
    assert (found["verdict"], found["seeds"]) == ("REFUTED", 1)


def test_stand_in_data_give_no_verdict(folder_of):
    folders = {"one": {"one": {0: folder_of("one", 0, 0.9)}}}
    claims, tests = ledger(A={"runs": ["one"]}), predicates(A=score_of("one"))
    found = row(claims, tests, folders, scale="demo", source="builtin")
    assert (found["verdict"], found["source"], found["seeds"]) == ("DEMO ONLY", "builtin", 1)
    assert found["measured"] == "score 0.9"


@pytest.mark.parametrize(
    ("scales", "full_size", "verdict"),
    [
        ({"desktop": {"rounds": 3}}, True, "REDUCED"),
        ({"desktop": {"rounds": 3}}, False, "CONFIRMED"),
        ({"demo": {"rounds": 3}}, True, "CONFIRMED"),
    ],
)
def test_shortened_runs_do_not_settle_the_size_of_a_number(folder_of, scales, full_size, verdict):
    folders = {"one": {"one": {0: folder_of("one", 0, 0.9)}}}
    claims = ledger(A={"runs": ["one"], "full_size": full_size})
    claims.runs["one"] = claims.runs["one"].model_copy(update={"scales": scales})
    found = row(claims, predicates(A=score_of("one")), folders)
    assert (found["verdict"], found["measured"]) == (verdict, "score 0.9")


def test_nor_do_groupings_that_a_scale_changes(folder_of):
    folders = {"one": {"one": {0: folder_of("one", 0, 0.9)}}}
    claims = ledger(A={"groupings": ["one"], "full_size": True})
    settings = dict.fromkeys(("dataset", "purpose", "expected"), "x") | {"seeds": {}, "minutes": {}}
    one = Grouping(federation={}, method={}, scales={"desktop": {"method": {}}}, **settings)
    claims.groupings["one"] = one
    assert row(claims, predicates(A=score_of("one")), folders)["verdict"] == "REDUCED"


def test_a_claim_of_theory_is_judged_whatever_the_data(tmp_path):
    write_json(tmp_path / "record.json", {"tables": []})
    tests = predicates(A=lambda evidence: {"score": float(evidence.study("toy") == {})})
    found = row(
        ledger(A={"studies": ["toy"]}), tests, {}, {"toy": str(tmp_path)}, "demo", "builtin"
    )
    assert (found["verdict"], found["source"], found["seeds"]) == ("CONFIRMED", "none", 1)


@pytest.mark.parametrize("source", ["builtin", "mirror"])
def test_a_claim_whose_run_has_no_seed_at_this_scale_is_not_run(source):
    tests = predicates(A=score_of("one"))
    found = row(ledger(A={"runs": ["one"]}), tests, {"one": {"one": {}}}, source=source)
    assert (found["verdict"], found["seeds"], found["measured"]) == ("NOT RUN", 0, "")


@pytest.mark.parametrize("without", [{"two": {}}, {}], ids=["no seeds", "no run at this scale"])
def test_a_claim_is_not_run_when_one_of_its_runs_is_not(folder_of, without):
    folders = {"one": {"one": {0: folder_of("one", 0, 0.9)}}, "two": without}
    tests = predicates(A=score_of("two"))
    found = row(ledger(A={"runs": ["one", "two"]}), tests, folders)
    assert (found["verdict"], found["seeds"]) == ("NOT RUN", 0)


def test_only_seeds_that_all_runs_have_are_compared(folder_of):
    folders = {
        run: {run: {seed: folder_of(run, seed, 0.6) for seed in seeds}}
        for run, seeds in (("one", (0, 1, 2)), ("two", (1, 2, 3)))
    }
    seen = []

    def pair(evidence: Evidence) -> dict[str, float]:
        seen.append({evidence.run(family).folder.name for family in ("one", "two")})
        return {"score": 1.0}

    assert row(ledger(A={"runs": ["one", "two"]}), predicates(A=pair), folders)["seeds"] == 2
    assert seen == [{"seed1"}, {"seed2"}]


def test_a_sweep_is_seen_as_all_its_runs(folder_of):
    folders = {"one": {f"one_{n}": {0: folder_of(f"one_{n}", 0, n / 10)} for n in (7, 9)}}

    def mean(evidence: Evidence) -> dict[str, float]:
        finals = [run.scores().iloc[-1].mean() for run in evidence.members("one")]
        return {"score": sum(finals) / len(finals)}

    assert row(ledger(A={"runs": ["one"]}), predicates(A=mean), folders)["measured"] == "score 0.8"


# ---- Completeness -------------------------------------------------------------------------------


def test_a_claim_without_predicate_is_named():
    with pytest.raises(InputError, match="claim B of the ledger cfl has no predicate"):
        check_complete(ledger(A={}, B={}), predicates(A=score_of("one")))


def test_a_predicate_without_claim_is_named():
    with pytest.raises(InputError, match="predicate B has no claim in the ledger cfl"):
        check_complete(ledger(A={}), predicates(A=score_of("one"), B=score_of("one")))


def test_nothing_is_judged_before_all_is_complete():
    with pytest.raises(InputError, match="has no predicate"):
        evaluate(ledger(A={}), {}, {}, {}, "demo", "builtin")


def test_two_predicates_of_one_claim_are_refused():
    claim = Predicates()
    claim("A", {})(lambda evidence: {})
    with pytest.raises(ValueError, match="claim A has two predicates"):
        claim("A", {})(lambda evidence: {})


def test_an_unknown_paper_has_no_claims():
    with pytest.raises(InputError, match="there are no claims for paper 'abc'; there are for cfl"):
        predicates_of("abc")


# ---- What predicates look at --------------------------------------------------------------------


def test_evidence_of_a_run(tmp_path):
    measurements = tiny.scores({0: [0.1, 0.2], 4: [0.3, 0.4]}) + tiny.rows(gap_update={3: -0.5})
    folder = Path(tiny.write(tmp_path / "run" / "seed0", tiny.record(), measurements))
    run = RunEvidence(folder)
    assert run.scores().to_dict("index") == {0: {0: 0.1, 1: 0.2}, 4: {0: 0.3, 1: 0.4}}
    assert run.group_metric("gap_update").to_dict() == {3: -0.5}
    assert [node["id"] for node in run.splits()] == [0, 1]
    assert [run.is_pure(node) for node in range(5)] == [False, False, True, True, True]
    assert run.true_groups.tolist() == tiny.TRUTH
    assert run.groups.tolist() == [3, 3, 2, 2, 4, 4]
