"""Do vectors tell whose data are alike? REPA Fig. 1.

How alike clients are is measured by one grouping of each kind of data, which all methods are held
against: label counts, which everybody has, or pipelines as REPA's classifier sees them.
"""

import numpy as np

from clustered_fl.claims.evidence import Evidence
from clustered_fl.claims.predicates import Measured
from clustered_fl.claims.repa.registry import claim
from clustered_fl.metrics.correlation import correlation, label_similarity
from clustered_fl.metrics.profiles import label_counts, pairwise

REPA = "repa_groups_cifar_{kind}_sae"
WD = {"WD, f = 1": "wd_groups_cifar_{kind}_f1", "WD, f = 2": "wd_groups_cifar_{kind}_f2"}
JUDGE = "repa_groups_cifar_{kind}_clf"
SKEWED = {"skew": "label skew", "both": "both"}
# Other statistics than mean and quartiles -> the end of their grouping's name.
STATISTICS = {"mean": "mean", "mean and deviation": "spread", "four moments": "moments"}


def alike_in_labels(evidence: Evidence, kind: str) -> np.ndarray:
    """Cosine of the label counts of every two training clients [M, M]."""
    grouping = evidence.grouping(REPA.format(kind=kind))
    return label_similarity(label_counts(grouping.folder)[: len(grouping.true_groups)])


def alike_in_pipelines(evidence: Evidence, kind: str) -> np.ndarray:
    """How alike the pipelines of every two training clients are [M, M]."""
    (found,) = pairwise(evidence.grouping(JUDGE.format(kind=kind)).folder, "similarity").values()
    return found


def best(evidence: Evidence, name: str, similarity: np.ndarray) -> float:
    """Highest correlation of a grouping's cosines with a similarity, over all rounds measured."""
    cosines = pairwise(evidence.grouping(name).folder, "cosine").values()
    return float(max(correlation(similarity, each) for each in cosines))


def _of_wd(evidence: Evidence, kind: str, similarity: np.ndarray) -> Measured:
    return {each: best(evidence, name.format(kind=kind), similarity) for each, name in WD.items()}


def of_wd_under_skew(evidence: Evidence) -> Measured:
    """Highest correlation of WD with label counts, over rounds, epochs and kinds of clients."""
    found = {
        f"{each}, {name}": value
        for kind, name in SKEWED.items()
        for each, value in _of_wd(evidence, kind, alike_in_labels(evidence, kind)).items()
    }
    return {"best of WD": max(found.values())} | found


claim("REPA-F1-a", {"best of WD": ">= 0.5"})(of_wd_under_skew)
claim("REPA-F1-d", {"best of WD": "> 0.6"})(of_wd_under_skew)


@claim("REPA-F1-b", {"REPA": ">= 0.15", "WD over REPA": ">= 0"})
def repa_follows_under_skew(evidence: Evidence) -> Measured:
    """Highest correlations with label counts, over rounds."""
    similarity = alike_in_labels(evidence, "skew")
    repa = best(evidence, REPA.format(kind="skew"), similarity)
    wd = max(_of_wd(evidence, "skew", similarity).values())
    return {"REPA": repa, "WD over REPA": wd - repa}


@claim("REPA-F1-c", {"REPA over WD": "> 0"})
def repa_leads_under_drift(evidence: Evidence) -> Measured:
    """Highest correlations with pipelines, over rounds."""
    similarity = alike_in_pipelines(evidence, "drift")
    repa = best(evidence, REPA.format(kind="drift"), similarity)
    found = _of_wd(evidence, "drift", similarity)
    return {"REPA over WD": repa - max(found.values()), "REPA": repa} | found


def overall(evidence: Evidence, name: str) -> float:
    """Mean of a grouping's correlations with labels and with pipelines, after the last round."""
    cosines = pairwise(evidence.grouping(name).folder, "cosine")
    alike = (alike_in_labels(evidence, "both"), alike_in_pipelines(evidence, "both"))
    return float(np.mean([correlation(each, cosines[max(cosines)]) for each in alike]))


@claim("REPA-F1-e", {f"over {name}": ">= 0" for name in STATISTICS})
def mean_and_quartiles_are_best(evidence: Evidence) -> Measured:
    """Lead of mean and quartiles over other statistics where labels and pipelines differ."""
    usual = REPA.format(kind="both")
    own = overall(evidence, usual)
    leads = {
        f"over {name}": own - overall(evidence, f"{usual}_{end}")
        for name, end in STATISTICS.items()
    }
    return leads | {"mean and quartiles": own}
