"""Scenario 3: 200 writers without known clusters (FLT Table III, Figs 3 and 4)."""

from collections.abc import Callable

from sklearn.metrics import adjusted_rand_score

from clustered_fl.claims.evidence import Evidence
from clustered_fl.claims.flt.registry import claim
from clustered_fl.claims.flt.scores import NAMES, accuracy_of, lead, rounds_of
from clustered_fl.claims.predicates import Measured
from clustered_fl.groupings.distances import ward
from clustered_fl.metrics import accuracy, recovery

MODELS = {"MLP": "s3_mlp", "CNN": "s3_cnn"}
CUTS = ("c2", "c3", "c5")


@claim("FLT-T3-a", {"MLP": ">= 0", "CNN": ">= 0"})
def generic_form_is_best(evidence: Evidence) -> Measured:
    """Smallest lead of FLT with the whole relatedness over FLT with clusters."""
    return {
        name: min(lead(evidence, column, "flt", cut) for cut in CUTS)
        for name, column in MODELS.items()
    }


@claim("FLT-T3-b", {"MLP": "> 0", "CNN": "> 0"})
def more_clusters_are_worse(evidence: Evidence) -> Measured:
    """Smallest loss from two to three and from three to five clusters."""
    steps = (("c2", "c3"), ("c3", "c5"))
    return {
        name: min(lead(evidence, column, *step) for step in steps)
        for name, column in MODELS.items()
    }


@claim("FLT-T3-c", {"MLP": "<= 3", "CNN": "<= 3"})
def methods_hardly_differ(evidence: Evidence) -> Measured:
    """Range of the accuracies of FedAvg, PCA+kM+HC, FedSEM and FLT, in points."""
    found = {}
    for name, column in MODELS.items():
        values = [
            accuracy_of(evidence, f"{column}_{m}") for m in ("fedavg", "pca", "fedsem", "flt")
        ]
        found[name] = max(values) - min(values)
    return found


def _over_fedavg(column: str) -> Callable[[Evidence], Measured]:
    def measure(evidence: Evidence) -> Measured:
        return {"FLT over FedAvg": lead(evidence, column, "flt", "fedavg")}

    return measure


for _name, _column in MODELS.items():
    claim(f"FLT-T3-d-{_name.lower()}", {"FLT over FedAvg": "> 0"})(_over_fedavg(_column))


RIVALS = ("fedavg", "pca", "fedsem", "cfl")


def _speed(column: str) -> Callable[[Evidence], Measured]:
    """First tested round with 60 %; infinite if never, no verdict if nobody gets there."""

    def measure(evidence: Evidence) -> Measured:
        first = {
            NAMES[name]: accuracy.first_round(
                accuracy.client_scores(evidence.run(f"flt_{column}_{name}").folder), 60
            )
            for name in ("flt", *RIVALS)
        }
        return {"rounds ahead": min(first[NAMES[name]] for name in RIVALS) - first["FLT"]} | first

    return measure


for _name, _column in MODELS.items():
    claim(f"FLT-T3-e-{_name.lower()}", {"rounds ahead": "> 0"})(_speed(_column))


@claim("FLT-T3-g", {"MLP": ">= 10", "CNN": "> 0"})
def flt_beats_ifca(evidence: Evidence) -> Measured:
    """Lead over IFCA, whose clusters with the CNN train the last layer only, as in its own code."""
    found = {name: lead(evidence, column, "flt", "ifca") for name, column in MODELS.items()}
    return found | {"CNN, all layers": lead(evidence, "s3_cnn", "flt", "ifca_full")}


# FLT with everybody, as CFL has it, where that was trained.
FLT_BESIDE_CFL = {"MLP": "s3_mlp_flt_all", "CNN": "s3_cnn_flt"}


@claim("FLT-T3-h", {"MLP": ">= 7", "CNN": ">= 4"})
def flt_beats_cfl(evidence: Evidence) -> Measured:
    """Lead over CFL after equally many rounds."""
    found = {}
    for name, column in MODELS.items():
        runs = (FLT_BESIDE_CFL[name], f"{column}_cfl")
        until = min(rounds_of(evidence, run) for run in runs)
        flt, cfl = (accuracy_of(evidence, run, until) for run in runs)
        found[name] = flt - cfl
    return found


@claim("FLT-T3-i", {"FedAvg": ">= -2 and <= 2", "FLT": ">= -2 and <= 2"})
def participation_hardly_matters(evidence: Evidence) -> Measured:
    """Points gained with everybody participating, after as many rounds, MLP."""
    until = rounds_of(evidence, "s3_mlp_flt_all")
    found = {}
    for name, method in {"FedAvg": "fedavg", "FLT": "flt"}.items():
        run = f"s3_mlp_{method}"
        gained = accuracy_of(evidence, f"{run}_all", until) - accuracy_of(evidence, run, until)
        found[name] = gained
    return found


@claim("FLT-F3-a", {"pairs across": "<= 0.1", "larger cluster": "<= 0.9"})
def two_blocks_remain(evidence: Evidence) -> Measured:
    """Share of the related pairs that two clusters cut, and of all pairs that are related."""
    related = evidence.grouping("flt_groups_s3").found.related
    clusters = ward(related, 2)
    same = clusters[:, None] == clusters[None, :]
    return {
        "pairs across": 1 - recovery.inside(related, clusters),
        "density": recovery.density(related),
        "density within clusters": float(related[same].mean()),
        "larger cluster": float(max((clusters == 0).mean(), (clusters == 1).mean())),
    }


@claim("FLT-F3-b", {"agreement": "= 1"})
def leaves_are_not_clients(evidence: Evidence) -> Measured:
    """Agreement of the code's two clusters with those found, and what it costs in points."""
    right, leaf = (evidence.grouping(f"flt_groups_s3_{name}") for name in ("c2", "c2_leaf"))
    return {
        "agreement": float(adjusted_rand_score(right.found.groups, leaf.found.groups)),
        "points lost": lead(evidence, "s3_mlp", "c2", "c2_leaf"),
    }
