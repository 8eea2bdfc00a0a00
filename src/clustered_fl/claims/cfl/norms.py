"""Norm criteria for congruent and incongruent clients (CFL Fig. 8)."""

import numpy as np
import pandas as pd

from clustered_fl.claims.cfl.registry import claim
from clustered_fl.claims.evidence import Evidence, RunEvidence
from clustered_fl.claims.predicates import Measured
from clustered_fl.metrics.criteria import share_of_rounds

# The end is the mean over the last 5 % of the rounds: single rounds carry mini-batch noise.
END = 0.05
# Late and early rounds of Fig. 8, as fractions of all rounds.
WINDOWS = ((0.9, 1.0), (0.05, 0.15))
CONDITIONS = ("congruent", "incongruent")
MULTIPLES = np.arange(1.0, 10.25, 0.25)


def norms(evidence: Evidence, condition: str) -> pd.DataFrame:
    """Norms over rounds: columns mean (eq. 30), largest (eq. 31) and average."""
    run = evidence.run(f"cfl_fig8_{condition}")
    names = {"mean": "mean", "max": "largest", "average": "average"}
    columns = {new: run.group_metric(f"{old}_update_norm") for old, new in names.items()}
    return pd.DataFrame(columns)


def end_of(curve: pd.Series) -> float:
    """Mean over the last rounds as a fraction of the curve's maximum."""
    return float(curve.tail(max(1, round(END * len(curve)))).mean() / curve.max())


@claim("CFL-F8-a", {"congruent": "<= 0.1", "incongruent": "<= 0.1"})
def mean_update_vanishes(evidence: Evidence) -> Measured:
    """Mean-update norm at the end as a fraction of its maximum, both conditions."""
    return {condition: end_of(norms(evidence, condition)["mean"]) for condition in CONDITIONS}


@claim("CFL-F8-b", {"largest": "<= 0.2"})
def congruent_clients_vanish(evidence: Evidence) -> Measured:
    """Largest client norm at the end over its maximum, congruent; the average beside it."""
    found = norms(evidence, "congruent")
    return {"largest": end_of(found["largest"]), "average": end_of(found["average"])}


@claim("CFL-F8-c", {"end over early": ">= 1"})
def incongruent_clients_stagnate(evidence: Evidence) -> Measured:
    """Largest norm over the last tenth of the rounds over that of rounds 5-15 %, incongruent."""
    curve = norms(evidence, "incongruent")["largest"]
    late, early = (curve.iloc[int(a * len(curve)) : int(b * len(curve))] for a, b in WINDOWS)
    return {"end over early": float(late.mean() / early.mean())}


def fires(run: RunEvidence, multiple: float) -> bool:
    """Whether criteria (30) and (31) ever ask for a split.

    With eps_1 a tenth of the largest mean norm and eps_2 = `multiple` eps_1 (section V-B).
    """
    return share_of_rounds(run.frame, 0.1, multiple) > 0


@claim("CFL-F8-d", {"settings of eps_2 that separate": "> 0"})
def criteria_tell_them_apart(evidence: Evidence) -> Measured:
    """Share of eps_2 in [eps_1, 10 eps_1] that split incongruent clients and never the others."""
    congruent, incongruent = (evidence.run(f"cfl_fig8_{name}") for name in CONDITIONS)
    good = [fires(incongruent, m) and not fires(congruent, m) for m in MULTIPLES]
    return {"settings of eps_2 that separate": float(np.mean(good))}
