"""Theorems 1 and 2, Table VI, and where the public code departs from Algorithms 2 and 3."""

from collections.abc import Callable

import numpy as np
import pandas as pd

from clustered_fl.claims.evidence import Evidence
from clustered_fl.claims.flt.registry import claim
from clustered_fl.claims.predicates import Measured

DIFFERENCES = "flt_code_differences"


def _searched(study: str, checks: tuple[str, ...]) -> Callable[[Evidence], Measured]:
    """Cases to which a statement applied, none if one of its checks had none, and violations."""

    def measure(evidence: Evidence) -> Measured:
        rows = evidence.study(study)["checks"].set_index("check").loc[list(checks)]
        trials = rows["trials"].sum() * (rows["trials"] > 0).all()
        return {"violations": float(rows["violations"].sum()), "trials": float(trials)}

    return measure


# Claim -> study and its checks. The statement in the ledger is the paper's, right or wrong.
ERROR, DESCENT = "flt_clustering_error", "flt_descent"
SEARCHED = {
    "FLT-Th1-a": (ERROR, ("theorem_1_printed", "theorem_1_printed_simulated")),
    "FLT-Th1-b": (ERROR, ("theorem_1_corrected", "theorem_1_corrected_simulated")),
    "FLT-Th1-c": (ERROR, ("theorem_1_average_error",)),
    "FLT-Th2-a": (DESCENT, ("theorem_2_matched", "theorem_2_mismatched")),
    "FLT-Th2-b": (DESCENT, ("theorem_2_printed_sum",)),
    "FLT-Th2-c": (DESCENT, ("theorem_2_printed_start",)),
    "FLT-Th2-d": (DESCENT, ("theorem_2_overlapping", "theorem_2_star")),
    "FLT-Th2-e": (DESCENT, ("theorem_2_unequal_start",)),
    "FLT-Th2-f": (DESCENT, ("theorem_2_large_step",)),
}
for _claim, (_study, _checks) in SEARCHED.items():
    claim(_claim, {"violations": "= 0", "trials": "> 0"})(_searched(_study, _checks))


def _one_off(evidence: Evidence) -> pd.DataFrame:
    return evidence.study("flt_communication")["one_off"]


@claim("FLT-T6-a", {"largest share": "< 0.01"})
def one_off_exchange_is_negligible(evidence: Evidence) -> Measured:
    """Share of the one-off exchange in all that FLT sends, over the scenarios."""
    table = _one_off(evidence)
    return {
        "largest share": float(table["share"].max()),
        "smallest share": float(table["share"].min()),
        "largest with decoder": float(table["share_with_decoder"].max()),
    }


@claim("FLT-T6-b", {"least factor": "> 1", "difference from (C + 1) / 2": "= 0"})
def ifca_sends_more(evidence: Evidence) -> Measured:
    """How many times as much as FedSEM IFCA sends, counted, against (C + 1) / 2."""
    study = evidence.study("flt_communication")
    sent = study["communication"]
    factor = sent.loc[sent["method"] == "IFCA", "relative"].to_numpy()
    expected = (study["one_off"]["clusters"].to_numpy() + 1) / 2
    return {
        "least factor": float(factor.min()),
        "largest factor": float(factor.max()),
        "difference from (C + 1) / 2": float(np.abs(factor - expected).max()),
    }


@claim("FLT-T6-c", {"largest ratio": "<= 1"})
def encoder_is_as_simple_as_the_model(evidence: Evidence) -> Measured:
    """Parameters of the encoder over those of the clients' model."""
    ratio = _one_off(evidence)["encoder_over_local"]
    return {"largest ratio": float(ratio.max()), "smallest ratio": float(ratio.min())}


@claim("FLT-A2-a", {"near": "= 1", "far": "= 0"})
def printed_threshold_relates_near_clients(evidence: Evidence) -> Measured:
    """What Sign(A - gamma) makes of a distance below and of one above the threshold."""
    table = evidence.study(DIFFERENCES)["thresholds"].set_index("rule")
    (printed,) = (row for rule, row in table.iterrows() if "printed" in rule)
    return {name: float(printed[name]) for name in ("near", "far", "own", "others")}


def _weight_sums(formula: str) -> Callable[[Evidence], Measured]:
    def measure(evidence: Evidence) -> Measured:
        table = evidence.study(DIFFERENCES)["weight_sums"]
        sums = table.loc[table["formula"] == formula, "weight_sum"]
        return {"smallest sum": float(sums.min()), "largest sum": float(sums.max())}

    return measure


# Claim -> formula of Algorithm 3; a model is neither shrunk nor blown up by weights that sum to 1.
FORMULAS = {"FLT-A3-a": "case I, printed", "FLT-A3-b": "case II, printed"}
for _claim, _formula in FORMULAS.items():
    claim(_claim, {"smallest sum": ">= 0.999", "largest sum": "<= 1.001"})(_weight_sums(_formula))


@claim("FLT-BUG-a", {"difference": "<= 0.001"})
def code_averages_all_clients_alike(evidence: Evidence) -> Measured:
    """Largest difference between the weights of two clients after one averaging over everybody."""
    table = evidence.study(DIFFERENCES)["in_place"].query("matrix == 'all ones'")
    weights = {rule: part.groupby("cluster")["weight"] for rule, part in table.groupby("rule")}
    spread = {rule: float((each.max() - each.min()).max()) for rule, each in weights.items()}
    return {"difference": spread["in place"], "difference if not in place": spread["plain"]}


@claim("FLT-BUG-b", {"share wrong": "= 0"})
def code_groups_the_clients_it_found(evidence: Evidence) -> Measured:
    """How often the coded groups are not those found, with clients in random order."""
    table = evidence.study(DIFFERENCES)["leaf_order"].query("order == 'random'")
    return {
        "share wrong": float(table["wrong"].mean()),
        "agreement": float(table["coded"].mean()),
        "agreement without the mistake": float(table["right"].mean()),
    }


@claim("FLT-BUG-c", {"copies": "= 0"})
def code_gives_every_client_real_images(evidence: Evidence) -> Measured:
    """Images that are copies of one image, in all and in the client that has most."""
    copies = evidence.study(DIFFERENCES)["padding"]["copies"]
    return {"copies": float(copies.sum()), "most of one client": float(copies.max())}


@claim("FLT-S4-a", {"ratio": ">= 0.8 and <= 1.25"})
def client_sizes_follow_a_power_law(evidence: Evidence) -> Measured:
    """Exponents fitted to the larger and to the smaller half of the clients; one law has one."""
    table = evidence.study(DIFFERENCES)["client_sizes"]
    coded = table[table["rule"] == "code"]
    half = coded["rank"] <= len(coded) // 2
    larger, smaller = (
        -float(np.polyfit(np.log(part["rank"]), np.log(part["samples"]), 1)[0])
        for part in (coded[half], coded[~half])
    )
    return {
        "ratio": smaller / larger,
        "exponent of the larger half": larger,
        "exponent of the smaller half": smaller,
        "smallest client": float(coded["samples"].min()),
    }
