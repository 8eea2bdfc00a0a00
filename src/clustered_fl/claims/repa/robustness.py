"""Are new clients led to the cluster of those they resemble? REPA Table 1 and Algorithm 1."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from clustered_fl.claims.evidence import Evidence
from clustered_fl.claims.predicates import Bounds, Measured
from clustered_fl.claims.repa.registry import claim
from clustered_fl.metrics import robustness
from clustered_fl.metrics.profiles import label_counts
from clustered_fl.metrics.uniformity import uniformity

KINDS = {"both": "both", "skew": "label skew", "drift": "concept drift"}


class Row(NamedTuple):
    """A row of Table 1: its numbers are those under both, label skew, concept drift."""

    name: str
    grouping: str
    published: tuple[float, float, float]
    errors: tuple[float, float, float]


ROWS = {
    "sae": Row("SAE", "repa_groups_cifar_{kind}_sae", (0.91, 0.90, 0.92), (0.02, 0.02, 0.02)),
    "clf": Row("CLF", "repa_groups_cifar_{kind}_clf", (0.87, 0.90, 0.89), (0.03, 0.02, 0.03)),
    "ae": Row("AE", "repa_groups_cifar_{kind}_ae", (0.89, 0.79, 0.89), (0.02, 0.03, 0.03)),
    "wd1": Row("WD, f = 1", "wd_groups_cifar_{kind}_f1", (0.75, 0.68, 0.25), (0.08, 0.05, 0.10)),
    "wd2": Row("WD, f = 2", "wd_groups_cifar_{kind}_f2", (0.84, 0.77, 0.15), (0.03, 0.03, 0.05)),
}
NEAR = 0.05
# Suffix of the groupings by vectors that are not divided by their lengths.
RAW = "_raw"


def against(*rivals: str) -> dict[str, tuple[str, str]]:
    """Comparisons of REPA's default with each of some rows: name -> kind of clients and row."""
    return {
        f"{name}, over {ROWS[row].name}": (kind, row)
        for kind, name in KINDS.items()
        for row in rivals
    }


AGAINST_WD, AGAINST_OTHERS = against("wd1", "wd2"), against("clf", "ae")


def scores(evidence: Evidence, name: str) -> pd.Series:
    """Robustness of one grouping, its error over clusters, its largest cluster (as `by_seed`)."""
    folder = evidence.grouping(name).folder
    return robustness.by_seed({name: {0: str(folder)}}).iloc[0]


def of(evidence: Evidence, row: str, kind: str, suffix: str = "") -> float:
    """Robustness in one cell of Table 1."""
    return float(scores(evidence, ROWS[row].grouping.format(kind=kind) + suffix)["robustness"])


def row_of(evidence: Evidence, row: str, suffix: str = "") -> Measured:
    """Robustness in one row of Table 1."""
    return {name: of(evidence, row, kind, suffix) for kind, name in KINDS.items()}


def of_sae(evidence: Evidence) -> Measured:
    """Robustness of REPA's default under the three kinds of non-IID data."""
    return row_of(evidence, "sae")


claim("REPA-T1-a", dict.fromkeys(KINDS.values(), ">= 0.85"))(of_sae)
claim("REPA-T1-f", dict.fromkeys(KINDS.values(), "> 0.9"))(of_sae)


@claim("REPA-T1-b", {"WD, f = 1": "<= 0.35", "WD, f = 2": "<= 0.35"})
def wd_is_lost_under_drift(evidence: Evidence) -> Measured:
    """Robustness of WD under concept drift, and of placing by lot."""
    found = {ROWS[row].name: of(evidence, row, "drift") for row in ("wd1", "wd2")}
    chance = scores(evidence, ROWS["wd1"].grouping.format(kind="drift"))["chance"]
    return found | {"by lot": float(chance)}


@claim("REPA-T1-c", dict.fromkeys(AGAINST_WD, "> 0"))
def repa_is_more_robust(evidence: Evidence) -> Measured:
    """Lead of REPA's default over WD, each f by itself: a maximum per seed would favour WD."""
    return {
        name: of(evidence, "sae", kind) - of(evidence, row, kind)
        for name, (kind, row) in AGAINST_WD.items()
    }


@claim("REPA-T1-b-raw", {"WD, f = 1": "<= 0.35"})
def wd_as_it_is_is_lost_under_drift(evidence: Evidence) -> Measured:
    """Robustness of WD under concept drift, lengths kept."""
    return {ROWS["wd1"].name: of(evidence, "wd1", "drift", RAW)}


@claim("REPA-T1-c-raw", dict.fromkeys(KINDS.values(), "> 0"))
def repa_as_it_is_is_more_robust(evidence: Evidence) -> Measured:
    """Lead of REPA's default over WD after one epoch, lengths of both kept."""
    own, rival = row_of(evidence, "sae", RAW), row_of(evidence, "wd1", RAW)
    return {name: own[name] - rival[name] for name in own}


@claim("REPA-T1-d", {f"{name}, one error added": ">= 0" for name in AGAINST_OTHERS})
def sae_is_best(evidence: Evidence) -> Measured:
    """Lead of the supervised autoencoder over each other encoder, its error added; the errors."""
    own = {kind: scores(evidence, ROWS["sae"].grouping.format(kind=kind)) for kind in KINDS}
    leads = {
        f"{name}, one error added": float(own[kind]["robustness"] + own[kind]["error"])
        - of(evidence, row, kind)
        for name, (kind, row) in AGAINST_OTHERS.items()
    }
    return leads | {f"{name}, error": float(own[kind]["error"]) for kind, name in KINDS.items()}


@claim("REPA-T1-e", {"both": "> 0", "label skew": "> 0"})
def two_epochs_are_better(evidence: Evidence) -> Measured:
    """Gain of WD from one to two epochs where labels are skewed."""
    return {
        KINDS[kind]: of(evidence, "wd2", kind) - of(evidence, "wd1", kind)
        for kind in ("both", "skew")
    }


def _numbers(row: str, suffix: str = "") -> Callable[[Evidence], Measured]:
    def measure(evidence: Evidence) -> Measured:
        ours, published = row_of(evidence, row, suffix), ROWS[row].published
        return {name: ours[name] - said for name, said in zip(ours, published, strict=True)}

    return measure


def _near(row: str) -> Bounds:
    """Two published standard errors either way, `NEAR` at least."""
    wide = zip(KINDS.values(), (max(NEAR, 2 * error) for error in ROWS[row].errors), strict=True)
    return {name: f">= -{width:g} and <= {width:g}" for name, width in wide}


for _row in ROWS:
    claim(f"REPA-T1-numbers-{_row}", _near(_row))(_numbers(_row))
for _row in ("sae", "wd1"):
    claim(f"REPA-T1-numbers-{_row}-raw", _near(_row))(_numbers(_row, RAW))

# Number of clusters -> grouping of the same clients, by the same vectors.
CUTS = {k: f"repa_groups_cifar_both_sae_{k}" for k in (1, 2, 5, 20)}
CUTS = dict(sorted((CUTS | {10: "repa_groups_cifar_both_sae"}).items()))


@claim("REPA-A1-a", {"one over ten": ">= 0"})
def one_cluster_is_not_worse_than_ten(evidence: Evidence) -> Measured:
    """Robustness of a single cluster, in which nobody can get lost, less that of ten."""
    found = {k: float(scores(evidence, CUTS[k])["robustness"]) for k in (1, 10)}
    return {"one over ten": found[1] - found[10], "one": found[1], "ten": found[10]}


@claim("REPA-A1-b", {"rank correlation": "< 0"})
def robust_clusters_are_not_uniform(evidence: Evidence) -> Measured:
    """Spearman's correlation of robustness and uniformity over numbers of clusters."""
    robust = {k: float(scores(evidence, name)["robustness"]) for k, name in CUTS.items()}
    alike = {k: _uniformity(evidence, name) for k, name in CUTS.items()}
    rank = spearmanr(list(robust.values()), list(alike.values())).statistic
    shown = {f"robustness, k = {k}": value for k, value in robust.items()}
    return {"rank correlation": float(rank)} | shown


def _uniformity(evidence: Evidence, name: str) -> float:
    grouping = evidence.grouping(name)
    groups = np.array(grouping.record["groups"])
    return uniformity(groups, label_counts(grouping.folder)[: len(groups)])
