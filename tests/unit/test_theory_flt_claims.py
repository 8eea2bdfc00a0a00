"""FLT's claims on theory and code, on tables whose right answer is known beforehand."""

from itertools import product
from pathlib import Path

import judging
import numpy as np
import pandas as pd
import pytest

from clustered_fl.claims.binding import bind, variants
from clustered_fl.claims.evidence import Evidence
from clustered_fl.claims.verdicts import measure_of
from clustered_fl.files import write_json
from clustered_fl.ledger.reading import load_ledger
from clustered_fl.options import call
from clustered_fl.theory.flt.clustering_error import clustering_error
from clustered_fl.theory.flt.code_differences import code_differences
from clustered_fl.theory.flt.communication import communication
from clustered_fl.theory.flt.descent import descent

LEDGER = load_ledger(Path(__file__).parents[2] / "config" / "papers" / "flt.yaml")
MEASURES = {name: claim.measure for name, claim in LEDGER.claims.items()}
SEARCHED = {name: each for name, each in MEASURES.items() if each["name"] == "violations"}
HOLDS = {"FLT-Th1-b", "FLT-Th2-a", "FLT-Th2-f"}
FAILS = "FLT-Th2-f"
"""Of a theorem beyond its range: the claim says that it is violated there."""


@pytest.fixture
def study(tmp_path):
    """Evidence from the tables of one study."""

    def study(name: str, **tables: list[dict] | pd.DataFrame) -> Evidence:
        for table, rows in tables.items():
            pd.DataFrame(rows).to_parquet(tmp_path / f"{table}.parquet")
        write_json(tmp_path / "record.json", {"tables": sorted(tables)})
        return judging.evidence(LEDGER, studies={name: tmp_path})

    return study


def result(claim: str, known: Evidence) -> tuple[dict[str, float], bool]:
    return judging.result(LEDGER, claim, known)


@pytest.mark.parametrize("claim", SEARCHED)
@pytest.mark.parametrize(("violations", "trials"), [(0, 5), (1, 5), (0, 0)])
def test_a_statement_holds_when_it_was_tried_and_not_violated(study, claim, violations, trials):
    own = SEARCHED[claim]["checks"]
    others = {check for each in SEARCHED.values() for check in each["checks"]} - set(own)
    rows = [{"check": check, "violations": 3, "trials": 9} for check in others]
    # The last of several checks decides.
    rows += [{"check": check, "violations": 0, "trials": 9} for check in own[:-1]]
    rows.append({"check": own[-1], "violations": violations, "trials": trials})
    measured, held = result(claim, study(SEARCHED[claim]["study"], checks=rows))
    assert measured["violations"] == violations
    assert held == (trials > 0 and (violations > 0) == (claim == FAILS))


def test_no_two_claims_rest_on_one_check():
    checks = [check for each in SEARCHED.values() for check in each["checks"]]
    assert len(set(checks)) == len(checks)


def test_every_check_of_the_studies_is_a_claim(study):
    small = {"trials": 500, "samples_max": 16, "clients": 4, "federations": 30}
    tables = {
        "flt_clustering_error": clustering_error(0, **small)["checks"],
        "flt_descent": descent(0, federations=40)["checks"],
    }
    for name, checks in tables.items():
        own = {claim: each["checks"] for claim, each in SEARCHED.items() if each["study"] == name}
        assert {check for found in own.values() for check in found} == set(checks["check"])
        for claim in own:
            assert result(claim, study(name, checks=checks))[1] == (claim in HOLDS)


@pytest.mark.parametrize(
    ("name", "tables"),
    [
        ("flt_communication", lambda: communication(seed=0)),
        ("flt_code_differences", lambda: code_differences(seed=0, trials=5)),
    ],
)
def test_claims_find_their_numbers_in_the_studies(study, name, tables):
    known = study(name, **tables())
    own = [claim for claim, each in MEASURES.items() if each.get("study") == name]
    assert len(own) > 1
    for claim in own:
        assert not np.isnan(list(result(claim, known)[0].values())).any(), claim


OTHERS = {"share": 0.3, "share_with_decoder": 0.6, "encoder_over_local": 2.0}


def on_cifar(rows: list[dict], client: str = "leaf_cnn", encoder: str = "printed") -> list[dict]:
    """These rows with two networks, and other rows with every other pair of them."""
    found = []
    for own in product(("leaf_cnn", "le_net"), ("printed", "residual")):
        about = dict(zip(("cifar10_client", "cifar10_encoder"), own, strict=True))
        found += [row | about for row in (rows if own == (client, encoder) else [OTHERS])]
    return found


@pytest.mark.parametrize(("largest", "holds"), [(0.0099, True), (0.01, False)])
def test_t6a_share_of_the_one_off_exchange(study, largest, holds):
    rows = [
        {"share": 0.001, "share_with_decoder": 0.5},
        {"share": largest, "share_with_decoder": 0.2},
    ]
    measured, held = result("FLT-T6-a", study("flt_communication", networks=on_cifar(rows)))
    assert list(measured.values()) == [largest, 0.5]
    assert held == holds


@pytest.mark.parametrize("claim", ["FLT-T6-a", "FLT-T6-c"])
def test_t6_reads_every_pair_of_networks_once(study, claim):
    """The numbers of one pair of networks are those that no other pair has."""
    entry, found = LEDGER.claims[claim], []
    for own in variants(entry).values():
        arguments = bind(own.measure, measure_of(own), LEDGER).arguments
        (pair,) = {tuple(each["where"].values()) for each in arguments["numbers"].values()}
        rows = on_cifar([dict.fromkeys(OTHERS, 0.7)], *pair)
        known = study("flt_communication", networks=rows)
        measured = call(measure_of(own), "t6", arguments, evidence=known)
        assert list(measured.values()) == [0.7, 0.7]
        found.append(pair)
    assert sorted(found) == sorted(product(("leaf_cnn", "le_net"), ("printed", "residual")))


@pytest.mark.parametrize(("factor", "holds"), [(3.0, True), (2.9, False)])
def test_t6b_ifca(study, factor, holds):
    sent = [
        {"method": "IFCA", "relative": 2.0},
        {"method": "FLT", "relative": 1.0},
        {"method": "IFCA", "relative": factor},
    ]
    evidence = study(
        "flt_communication", communication=sent, one_off=[{"clusters": 3}, {"clusters": 5}]
    )
    measured, held = result("FLT-T6-b", evidence)
    assert list(measured.values()) == pytest.approx([2.0, factor, 3.0 - factor])
    assert held == holds


@pytest.mark.parametrize(("ratio", "holds"), [(1.0, True), (1.1, False)])
def test_t6c_encoder(study, ratio, holds):
    rows = [OTHERS | {"encoder_over_local": each} for each in (0.2, ratio)]
    measured, held = result("FLT-T6-c", study("flt_communication", networks=on_cifar(rows)))
    assert (measured["largest ratio"], measured["smallest ratio"]) == (ratio, 0.2)
    assert held == holds


@pytest.mark.parametrize(("near", "far", "holds"), [(1, 0, True), (-1, 1, False), (1, -1, False)])
def test_a2a_printed_threshold(study, near, far, holds):
    rows = [
        {"rule": "Sign(A − γ), as printed", "near": near, "far": far, "own": 0.5, "others": 0.5},
        {"rule": "the code", "near": 1, "far": 0, "own": 1.0, "others": 0.0},
    ]
    measured, held = result("FLT-A2-a", study("flt_code_differences", thresholds=rows))
    assert (measured["relatedness of near clients"], measured["relatedness of far clients"]) == (
        near,
        far,
    )
    assert held == holds


FORMULAS = {"FLT-A3-a": "case I, printed", "FLT-A3-b": "case II, printed"}


@pytest.mark.parametrize("claim", FORMULAS)
@pytest.mark.parametrize(
    ("sums", "holds"), [((1.0, 1.0), True), ((0.01, 1.0), False), ((1.0, 2.0), False)]
)
def test_a3_weight_sums(study, claim, sums, holds):
    rows = [{"formula": FORMULAS[claim], "weight_sum": each} for each in sums]
    rows.append({"formula": "another", "weight_sum": 7.0})
    measured, held = result(claim, study("flt_code_differences", weight_sums=rows))
    assert list(measured.values()) == [min(sums), max(sums)]
    assert held == holds


@pytest.mark.parametrize(("weight", "holds"), [(0.5, False), (0.1, True)])
def test_buga_in_place(study, weight, holds):
    def rows(matrix, rule, weights):
        keys = {"matrix": matrix, "rule": rule}
        return [keys | {"receiver": r, "cluster": 0, "weight": w} for r, w in enumerate(weights)]

    table = rows("all ones", "in place", (0.5, weight)) + rows("all ones", "plain", (0.5, 0.5))
    evidence = study("flt_code_differences", in_place=table + rows("blocks", "in place", (1, 0)))
    measured, held = result("FLT-BUG-a", evidence)
    assert list(measured.values()) == pytest.approx([0.5 - weight, 0.0])
    assert held == holds


@pytest.mark.parametrize("wrong", [True, False])
def test_bugb_leaf_order(study, wrong):
    rows = [
        {"order": "random", "wrong": wrong, "right": 1.0, "coded": 0.1},
        {"order": "random", "wrong": False, "right": 0.8, "coded": 0.3},
        {"order": "sorted", "wrong": True, "right": 0.0, "coded": 0.0},
    ]
    measured, held = result("FLT-BUG-b", study("flt_code_differences", leaf_order=rows))
    assert list(measured.values()) == pytest.approx([wrong / 2, 0.2, 0.9])
    assert held == wrong


@pytest.mark.parametrize("copies", [0, 3])
def test_bugc_padding(study, copies):
    rows = [{"copies": 0}, {"copies": copies}, {"copies": 2 * copies}]
    measured, held = result("FLT-BUG-c", study("flt_code_differences", padding=rows))
    assert list(measured.values()) == [3 * copies, 2 * copies]
    assert held == (copies > 0)


@pytest.mark.parametrize("holds", [True, False])
def test_s4a_power_law(study, holds):
    ranks = np.arange(1, 41)
    sizes = 100.0 * ranks**-0.5 if holds else 10 + 90 * np.exp(-ranks / 4)
    table = pd.DataFrame({"rule": "code", "rank": ranks, "samples": sizes})
    other = pd.DataFrame({"rule": "power law", "rank": ranks, "samples": 1.0})
    evidence = study("flt_code_differences", client_sizes=pd.concat([table, other]))
    measured, held = result("FLT-S4-a", evidence)
    assert held == holds
    assert (measured["ratio"] == pytest.approx(1)) == holds
    assert measured["smallest client"] == pytest.approx(sizes.min())
