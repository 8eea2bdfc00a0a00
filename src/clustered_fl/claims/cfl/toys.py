"""Problems in the plane (CFL Figs 1 and 2) and simulated gradients (Fig. 3)."""

import pandas as pd

from clustered_fl.claims.cfl.registry import claim
from clustered_fl.claims.evidence import Evidence
from clustered_fl.claims.predicates import Measured

DISPUTED = "diverging conditionals"


def _accuracies(evidence: Evidence, panel: str) -> Measured:
    """Accuracy of the best joint linear model, and the lowest of the groups' own models."""
    table = evidence.study("cfl_violations")["accuracies"]
    table = table[table["panel"] == panel]
    joint = table[(table["model"] == "best joint") & (table["group"] == "all")]["accuracy"]
    own = table[table["model"] == "own"]["accuracy"]
    return {"joint": float(joint.iloc[0]), "own": float(own.min())}


@claim("CFL-F1-a", {"joint": ">= 0.99"})
def congruent_groups_share_a_model(evidence: Evidence) -> Measured:
    """Accuracy of the best linear model on congruent groups."""
    return _accuracies(evidence, "congruent")


@claim("CFL-F1-b", {"joint": "<= 0.80", "own": ">= 0.99"})
def xor_groups_share_none(evidence: Evidence) -> Measured:
    """Accuracy of the best linear model on the XOR of two separable groups."""
    return _accuracies(evidence, "xor")


@claim("CFL-F1-c", {"joint": "<= 0.55", "own": ">= 0.99"})
def disputed_labels_share_none(evidence: Evidence) -> Measured:
    """Accuracy of the best linear model where the groups label alike inputs differently."""
    return _accuracies(evidence, DISPUTED)


@claim("CFL-F1-d", {"smallest gap": "> 0"})
def one_bipartition_separates_them(evidence: Evidence) -> Measured:
    """Smallest separation gap at the joint optimum over the two incongruent panels."""
    table = evidence.study("cfl_violations")["separation"].set_index("panel")
    return {"smallest gap": float(table.loc[["xor", DISPUTED], "gap"].min())}


def _ends(evidence: Evidence, problem: str) -> Measured:
    """Mean and largest gradient norm at the end as fractions of their start."""
    norms = evidence.study("cfl_paths")["norms"]
    norms = norms[norms["problem"] == problem].sort_values("round")
    columns = {"mean": "mean_gradient_norm", "largest": "max_gradient_norm"}
    return {key: float(norms[c].iloc[-1] / norms[c].iloc[0]) for key, c in columns.items()}


def _last_cosines(evidence: Evidence) -> pd.DataFrame:
    table = evidence.study("cfl_paths")["cosines"]
    table = table[table["problem"] == "four clients"]
    return table[table["round"] == table["round"].max()].groupby("relation")["cosine"]


@claim("CFL-F2-a", {"largest cross": "<= -0.9", "smallest intra": ">= 0.8"})
def cosines_part(evidence: Evidence) -> Measured:
    """Cosines across and within clusters at the stationary point."""
    cosines = _last_cosines(evidence)
    return {"largest cross": cosines.max()["cross"], "smallest intra": cosines.min()["intra"]}


@claim("CFL-F2-b", {"mean": "< 0.001", "largest over mean": "> 10"})
def incongruent_clients_are_not_stationary(evidence: Evidence) -> Measured:
    """Gradient norms at the end over their start, incongruent risks."""
    ends = _ends(evidence, "four clients")
    return ends | {"largest over mean": ends["largest"] / ends["mean"]}


@claim("CFL-F2-c", {"mean": "< 0.001", "largest": "< 0.001"})
def congruent_clients_are_stationary(evidence: Evidence) -> Measured:
    """Gradient norms at the end over their start, congruent risks."""
    return _ends(evidence, "congruent")


def _cells(evidence: Evidence) -> pd.DataFrame:
    return evidence.study("cfl_separation")["cells"]


@claim("CFL-F3-a", {"at gamma 1": ">= 0.98"})
def clustering_is_likely_up_to_gamma_1(evidence: Evidence) -> Measured:
    """Smallest share of positive gaps over all K at gamma = 1 and 1.5, fixed noise length."""
    cells = _cells(evidence)
    cells = cells[cells["noise"] == "fixed"]
    lowest = cells.groupby(cells["gamma"].round(6))["p_gap_positive"].min()
    return {"at gamma 1": float(lowest[1.0]), "at gamma 1.5": float(lowest[1.5])}


@claim("CFL-F3-b", {"violations": "= 0"})
def theorem_holds_in_its_region(evidence: Evidence) -> Measured:
    """Violations of Theorem 1 inside the guaranteed region."""
    cells = _cells(evidence)
    cells = cells[cells["guaranteed"]]
    return {"violations": float(cells["theorem_violations"].sum()), "cells": float(len(cells))}


@claim("CFL-F3-c", {"cells against": "= 0", "cells strictly above": "> 0"})
def correct_is_likelier_than_a_positive_gap(evidence: Evidence) -> Measured:
    """Cells in which P[correct] is below, and above, P[gap > 0]."""
    cells = _cells(evidence)
    difference = cells["p_correct"] - cells["p_gap_positive"]
    against, above = (difference < 0).sum(), (difference > 0).sum()
    return {"cells against": float(against), "cells strictly above": float(above)}
