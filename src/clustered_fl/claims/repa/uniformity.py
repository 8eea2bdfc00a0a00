"""How uniform are clusters of clients with two labels? REPA Fig. 2 and eq. (7)."""

import numpy as np
import pandas as pd

from clustered_fl.claims.evidence import Evidence
from clustered_fl.claims.predicates import Measured
from clustered_fl.claims.repa.registry import claim
from clustered_fl.metrics import uniformity
from clustered_fl.metrics.correlation import label_similarity
from clustered_fl.metrics.profiles import label_counts

REPA, WD = "repa_groups_mnist_clf_10", "wd_groups_mnist_f1_10"
# Fig. 2 from the number of clusters on with which Fig. 5 begins.
SIZES = (10, 12, 15, 20, 25, 30, 35, 40, 45, 50)


def counts_of(evidence: Evidence) -> np.ndarray:
    """Images of each label that training clients have, d_i [M, classes]."""
    grouping = evidence.grouping(REPA)
    return label_counts(grouping.folder)[: len(grouping.true_groups)]


def curves(evidence: Evidence) -> pd.DataFrame:
    """Uniformity by number of clusters (rows) and method (columns); fewer for fewer clients."""
    counts = counts_of(evidence)
    found = {"REPA": evidence.grouping(REPA).found, "WD": evidence.grouping(WD).found}
    vectors = {name: each.signatures[: len(counts), 0] for name, each in found.items()}
    sizes = [k for k in SIZES if k <= len(counts)]
    seed = evidence.grouping(REPA).record["config"]["seed"]
    table = uniformity.curves(vectors, counts, sizes, seed)
    return table.pivot_table(index="clusters", columns="method", values="uniformity")


@claim("REPA-F2-a", {"least share": ">= 0.9"})
def repa_is_nearly_optimal(evidence: Evidence) -> Measured:
    """Uniformity of REPA over that of clusters by label counts, over numbers of clusters."""
    share = _share(evidence)
    return {"least share": float(share.min()), "at 10": float(share.loc[10])}


@claim("REPA-F2-d", {"largest share": ">= 0.99"})
def repa_is_optimal_somewhere(evidence: Evidence) -> Measured:
    """The largest such share, and the number of clusters that has it."""
    share = _share(evidence)
    return {"largest share": float(share.max()), "clusters": float(share.idxmax())}


def _share(evidence: Evidence) -> pd.Series:
    table = curves(evidence)
    return table["REPA"] / table["distribution given"]


@claim("REPA-F2-b", {"largest lead of WD": "<= 0.05"})
def wd_is_no_better(evidence: Evidence) -> Measured:
    """Uniformity of WD less that of REPA, over numbers of clusters."""
    table = curves(evidence)
    lead = table["WD"] - table["REPA"]
    return {"largest lead of WD": float(lead.max()), "mean lead of WD": float(lead.mean())}


@claim("REPA-F2-c", {"largest distance": "<= 0.05"})
def random_is_flat(evidence: Evidence) -> Measured:
    """How far clusters by lot are from the mean cosine of all pairs of clients."""
    everybody = uniformity.uniformity(np.zeros(len(counts := counts_of(evidence))), counts)
    distance = (curves(evidence)["random"] - everybody).abs()
    return {"largest distance": float(distance.max()), "mean cosine": everybody}


@claim("REPA-E7-a", {"as printed": "<= 1"})
def printed_uniformity_is_a_cosine(evidence: Evidence) -> Measured:
    """Eq. (7) with its sum over i, j in c, i /= j taken at its word: every pair twice."""
    groups, counts = evidence.grouping(REPA).found.groups, counts_of(evidence)
    similarity = label_similarity(counts)
    means = []
    for group in np.unique(groups):
        own = similarity[np.ix_(groups == group, groups == group)]
        pairs = len(own) * (len(own) - 1) / 2
        means += [(own.sum() - np.trace(own)) / pairs] if pairs else []
    return {"as printed": float(np.mean(means)), "once": uniformity.uniformity(groups, counts)}
