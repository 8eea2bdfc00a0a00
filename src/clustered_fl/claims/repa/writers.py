"""Does clustering writers pay, for those who train and for those who do not? REPA Figs 3 and 4."""

from collections.abc import Callable

from clustered_fl.claims.evidence import Evidence
from clustered_fl.claims.predicates import Measured
from clustered_fl.claims.repa.registry import claim
from clustered_fl.metrics import validation
from clustered_fl.metrics.profiles import validation_sizes
from clustered_fl.records import load_rounds

# The grouping that knows how many images each writer is tested on; any of them does.
SIZES = "repa_groups_femnist_sae_10"
METHODS = {"FedAvg": "fedavg", "REPA": "repa10", "WD": "wd10"}
CLUSTERS = (2, 5, 10, 20)
# Tests that are averaged at the end, for one round more or less is worth half a point.
TESTS = 3


def ends(evidence: Evidence, run: str) -> dict[str, float]:
    """VAL and HO in %, weighted by images as everywhere here, mean of the last tests."""
    sizes = validation_sizes(evidence.grouping(SIZES).folder)
    rounds = load_rounds(evidence.run(f"repa_femnist_{run}").folder)
    return validation.last(validation.over_rounds(rounds, sizes), TESTS)["weighted"].to_dict()


def gains(evidence: Evidence, run: str, other: str) -> Measured:
    """Points of VAL and HO that `run` is above `other`."""
    ours, theirs = ends(evidence, run), ends(evidence, other)
    return {name: float(ours[name] - theirs[name]) for name in ("VAL", "HO")}


def _gains(run: str, other: str) -> Callable[[Evidence], Measured]:
    def measure(evidence: Evidence) -> Measured:
        return gains(evidence, run, other)

    return measure


claim("REPA-F3-a", {"VAL": "> 0", "HO": "> 0"})(_gains("repa10", "fedavg"))
claim("REPA-F3-d", {"VAL": "> 0", "HO": "> 0"})(_gains("wd10", "fedavg"))


@claim("REPA-F3-b", {"without FedProx": "<= 1", "with FedProx": "<= 1"})
def labels_are_worth_nothing(evidence: Evidence) -> Measured:
    """Points of HO lost when REPA, and not WD, clusters the writers and places those held out."""
    return {
        "without FedProx": gains(evidence, "wd10", "repa10")["HO"],
        "with FedProx": gains(evidence, "wd10_prox", "repa10_prox")["HO"],
    }


@claim("REPA-F3-c", {f"{name}, {of}": ">= 1" for name in METHODS for of in ("VAL", "HO")})
def prox_helps_everybody(evidence: Evidence) -> Measured:
    """Points gained by FedProx."""
    return {
        f"{name}, {of}": gained
        for name, run in METHODS.items()
        for of, gained in gains(evidence, f"{run}_prox", run).items()
    }


def _by_number(evidence: Evidence, method: str) -> dict[int, float]:
    """HO at the end by number of clusters."""
    return {k: float(ends(evidence, f"{method}{k}_prox")["HO"]) for k in CLUSTERS}


@claim("REPA-F4-a", {f"2 over {k}": "> 0" for k in CLUSTERS[1:]})
def wd_wants_few_clusters(evidence: Evidence) -> Measured:
    """Points of HO that WD with two clusters is above WD with more."""
    found = _by_number(evidence, "wd")
    return {f"2 over {k}": found[2] - found[k] for k in CLUSTERS[1:]} | _named(found)


@claim("REPA-F4-b", {"20 over 2": "> 0"})
def repa_wants_many_clusters(evidence: Evidence) -> Measured:
    """Points of HO that REPA with twenty clusters is above REPA with two."""
    found = _by_number(evidence, "repa")
    return {"20 over 2": found[20] - found[2]} | _named(found)


def _named(found: dict[int, float]) -> Measured:
    return {f"k = {k}": value for k, value in found.items()}


_SAME = {"VAL": ">= -1 and <= 1", "HO": ">= -1 and <= 1"}
claim("REPA-E3-a", _SAME)(_gains("repa10_prox_uniform", "repa10_prox"))
claim("REPA-E8-a", _SAME)(_gains("fedavg_prox_code", "fedavg_prox"))
