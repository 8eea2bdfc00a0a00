"""What Figs 1 and 2 of FLT show: groups of signatures, and blocks of related clients."""

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import silhouette_score

from clustered_fl.claims.evidence import Evidence
from clustered_fl.claims.flt.registry import claim
from clustered_fl.claims.predicates import Measured
from clustered_fl.metrics import recovery

# As many groups of signatures as the federation has labels.
LABELS = 10


@claim("FLT-F1-a", {"UMAP over principal components": "> 0"})
def umap_separates_better(evidence: Evidence) -> Measured:
    """Silhouettes of ten groups of signatures, found where they are, on UMAP and on three axes.

    Labels of signatures are not kept: a client sends none. The groups are those of k-means in all
    dimensions, so that they favour neither picture.
    """
    found = evidence.grouping("flt_groups_s2_mnist_enc1").found
    signatures = found.signatures[: len(found.points)]
    flat = signatures.reshape(-1, signatures.shape[2]).astype(np.float64)
    groups = KMeans(LABELS, n_init=10, random_state=0).fit_predict(flat)
    umap = float(silhouette_score(found.points.reshape(len(flat), -1), groups))
    axes = float(silhouette_score(recovery.principal(flat, 3), groups))
    return {"UMAP over principal components": umap - axes, "UMAP": umap, "three axes": axes}


@claim("FLT-F2-a", {"links within five blocks": ">= 0.9"})
def toy_has_five_blocks(evidence: Evidence) -> Measured:
    """Share of the links between clients that lie within Ward's five clusters."""
    grouping = evidence.grouping("flt_groups_fig2")
    related, truth = grouping.found.related, grouping.true_groups
    return {
        "links within five blocks": recovery.inside(related, grouping.found.groups),
        "links within true clusters": recovery.inside(related, truth),
        "agreement": float(grouping.record["agreement"]["ari"]),
    }
