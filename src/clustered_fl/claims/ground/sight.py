"""Who sees which kind of difference between clients."""

from clustered_fl.claims.evidence import Evidence
from clustered_fl.claims.ground.registry import claim
from clustered_fl.claims.ground.scores import grounds_of, grouped, seen, surplus
from clustered_fl.claims.predicates import Measured

# What looks at images and at nothing else.
LABEL_FREE = {
    "PCA+kM+HC": "pca",
    "FLT": "flt",
    "REPA": "repa",
    "REPA, FLT's encoder": "repa_encoder",
    "PACFL": "pacfl",
}


@claim("GR-a", {"highest": "<= 0.2"})
def label_free_methods_cannot_see_swapped_labels(evidence: Evidence) -> Measured:
    """Agreement of groupings by images alone where only names of labels differ."""
    found = {who: float(grouped(evidence, "swap", name)["ari"]) for who, name in LABEL_FREE.items()}
    return {"highest": max(found.values())} | found


@claim("GR-b", {"CFL": ">= 0.8"})
def updates_tell_swapped_labels(evidence: Evidence) -> Measured:
    """Agreement of CFL there."""
    return {"CFL": seen(evidence, "swap", "cfl")}


@claim("GR-c", {"REPA": ">= 0.8"})
def statistics_of_embeddings_tell_turned_images(evidence: Evidence) -> Measured:
    """Agreement of REPA's groupings where images are turned."""
    return {"REPA": float(grouped(evidence, "rotation", "repa")["ari"])}


@claim("GR-d", {"highest": "<= 0.5"})
def weights_do_not_tell_turned_images(evidence: Evidence) -> Measured:
    """Agreement of methods that look at weights or their changes."""
    found = {
        "CFL": seen(evidence, "rotation", "cfl"),
        "FedSEM": seen(evidence, "rotation", "fedsem"),
    }
    found["WD"] = float(grouped(evidence, "rotation", "wd")["ari"])
    return {"highest": max(found.values())} | found


@claim("GR-e", {"lowest": ">= 0.8"})
def who_is_told_the_number_finds_the_groups(evidence: Evidence) -> Measured:
    """Agreement of IFCA on every ground that has groups."""
    found = {ground: seen(evidence, ground, "ifca") for ground in grounds_of(evidence, "oracle")}
    return {"lowest": min(found.values())} | found


@claim("GR-f", {"largest": "= 0"})
def cfl_finds_the_number(evidence: Evidence) -> Measured:
    """Groups of CFL beyond the true number, on every ground that has groups."""
    found = {ground: surplus(evidence, ground, "cfl") for ground in grounds_of(evidence, "oracle")}
    return {"largest": max(abs(value) for value in found.values())} | found


# Grounds of FLT's own kind, and their numbers of groups.
OF_FLT = {"disjoint": 5, "ring": 5}


@claim("GR-g", {"largest": "= 0"})
def flt_finds_the_number_on_its_own_ground(evidence: Evidence) -> Measured:
    """Connected components of FLT's relatedness beyond the true number of groups."""
    found = {
        ground: float(grouped(evidence, ground, "flt")["components"]) - number
        for ground, number in OF_FLT.items()
    }
    return {"largest": max(abs(value) for value in found.values())} | found
