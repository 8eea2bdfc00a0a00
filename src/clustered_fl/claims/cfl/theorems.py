"""Theorem 1, lemmas, Corollary 1, equations (36), (41), (96): searched for violations."""

from collections.abc import Callable

from clustered_fl.claims.cfl.registry import claim
from clustered_fl.claims.evidence import Evidence
from clustered_fl.claims.predicates import Measured


def _searched(check: str) -> Callable[[Evidence], Measured]:
    """Trials to which a statement applied and the violations found."""

    def measure(evidence: Evidence) -> Measured:
        table = evidence.study("cfl_theorems")["checks"].set_index("check")
        row = table.loc[check]
        return {"violations": float(row["violations"]), "trials": float(row["trials"])}

    return measure


# Claim -> check of the study. The statement in the ledger is the paper's, right or wrong.
SEARCHED = {
    "CFL-Th1-a": "theorem_1_intra",
    "CFL-Th1-b": "theorem_1_cross",
    "CFL-Th1-c": "theorem_1_own_pairs",
    "CFL-Th1-d": "theorem_1_counterexample",
    "CFL-R1-a": "remark_1",
    "CFL-R1-b": "remark_1_empirical",
    "CFL-L2-a": "lemma_2",
    "CFL-L3-a": "lemma_3_printed",
    "CFL-L3-b": "lemma_3_corrected",
    "CFL-L4-a": "lemma_4",
    "CFL-L4-b": "projection_angles",
    "CFL-C1-a": "corollary_1",
    "CFL-C1-b": "corollary_1_converse",
    "CFL-G-a": "criterion_36",
    "CFL-A5-b": "orthonormal_invariance",
    "CFL-A1-a": "algorithm_1_single_linkage",
    "CFL-A1-b": "algorithm_1_literal",
}
for _claim, _check in SEARCHED.items():
    claim(_claim, {"violations": "= 0", "trials": "> 0"})(_searched(_check))


@claim("CFL-CL-a", {"correct": ">= 0.95"})
def complete_linkage_is_another_rule(evidence: Evidence) -> Measured:
    """How often complete linkage differs from Algorithm 1, and is correct, for gamma up to 1."""
    table = evidence.study("cfl_theorems")["linkage"]
    table = table[table["gamma"] <= 1]
    return {
        "differs": float(table["p_differ"].mean()),
        "correct": float(table["p_correct_complete"].min()),
    }


@claim("CFL-BUG-a", {"lost": "= 0"})
def demo_keeps_all_clients(evidence: Evidence) -> Measured:
    """Mean number of clients that the public demonstration's recursion loses by its third split."""
    table = evidence.study("cfl_index_bug")["splits"]
    last = table[(table["order"] == "shuffled") & (table["split"] == table["split"].max())]
    means = last.groupby("rule")["lost"].mean()
    return {"lost": float(means["demo"]), "lost with client ids": float(means["correct"])}


def _proof(figure: str) -> Callable[[Evidence], Measured]:
    def measure(evidence: Evidence) -> Measured:
        table = evidence.study("cfl_proofs")["predicates"]
        return {"violations": float(table[table["figure"] == figure]["violations"].sum())}

    return measure


PROOFS = {"CFL-F11-a": "fig10", "CFL-F12-a": "fig11", "CFL-F13-a": "fig12"}
for _claim, _figure in PROOFS.items():
    claim(_claim, {"violations": "= 0"})(_proof(_figure))
