"""Whom clustering helps, and by how much."""

from clustered_fl.claims.evidence import Evidence
from clustered_fl.claims.ground.registry import claim
from clustered_fl.claims.ground.scores import contenders, grounds_of, mean, worst
from clustered_fl.claims.predicates import Measured

ENDS = ("fedavg", "local")
"""Everybody together and everybody alone: no clusterings."""


@claim("GR-h", {"largest lead": "<= 1"})
def nothing_beats_the_true_groups(evidence: Evidence) -> Measured:
    """Points by which the best other contender is ahead of the true groups, on every ground."""
    there, found = contenders(evidence), {}
    for ground in grounds_of(evidence, "oracle"):
        others = [mean(evidence, ground, name) for name in there[ground] if name != "oracle"]
        found[ground] = max(others) - mean(evidence, ground, "oracle")
    return {"largest lead": max(found.values())} | found


@claim("GR-i", {"largest lead": "< 1"})
def on_real_writers_nothing_beats_one_model_for_all(evidence: Evidence) -> Measured:
    """Points by which each clustering is ahead of FedAvg, best first."""
    base = mean(evidence, "writers", "fedavg")
    names = (name for name in contenders(evidence)["writers"] if name not in ENDS)
    found = {name: mean(evidence, "writers", name) - base for name in names}
    best = dict(sorted(found.items(), key=lambda each: -each[1]))
    return {"largest lead": max(found.values())} | best


@claim("GR-j", {"least lead": "> 0"})
def sharing_beats_training_alone(evidence: Evidence) -> Measured:
    """Points by which FedAvg within the true groups is ahead of Local, on every ground."""
    found = {
        ground: mean(evidence, ground, "oracle") - mean(evidence, ground, "local")
        for ground in grounds_of(evidence, "oracle")
    }
    return {"least lead": min(found.values())} | found


@claim("GR-k", {"least surplus": "> 0"})
def the_worst_gain_most(evidence: Evidence) -> Measured:
    """Gain of the worst tenth by the true groups minus that of the mean, on every ground."""
    found = {}
    for ground in grounds_of(evidence, "oracle"):
        of_worst, of_mean = (
            measure(evidence, ground, "oracle") - measure(evidence, ground, "fedavg")
            for measure in (worst, mean)
        )
        found[ground] = of_worst - of_mean
    return {"least surplus": min(found.values())} | found
