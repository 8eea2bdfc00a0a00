"""What clustering costs in bytes and in rounds."""

from pathlib import Path

from clustered_fl.claims.evidence import Evidence
from clustered_fl.claims.ground.registry import claim
from clustered_fl.claims.ground.scores import grounds_of, rounds
from clustered_fl.claims.predicates import Measured
from clustered_fl.metrics.traffic import before_rounds, in_rounds

NOTHING: dict[str, list[str]] = {"before_down": [], "before_up": []}
# What one-shot methods send before the first round.
SHOTS = {
    "pca": NOTHING | {"before_up": ["signature"]},
    "repa": {"before_down": ["network"], "before_up": ["signature"]},
}


@claim("GR-l", {"largest share": "<= 0.5"})
def one_shot_needs_half_of_ifca_s_bytes(evidence: Evidence) -> Measured:
    """Bytes of one-shot methods as a share of IFCA's on the same ground, what comes before in."""
    found = {}
    for ground in grounds_of(evidence, "ifca"):
        ifca = evidence.run(f"ground_{ground}_ifca")
        models = int(ifca.record["config"]["method"]["clusters"])
        base = in_rounds(ifca.folder, models, 1)
        for name in SHOTS:
            found[f"{name}, {ground}"] = _bytes(evidence, ground, name) / base
    return {"largest share": max(found.values())} | found


def _bytes(evidence: Evidence, ground: str, contender: str) -> int:
    run = evidence.run(f"ground_{ground}_{contender}")
    grouping = evidence.grouping(f"ground_groups_{ground}_{contender}").folder
    warm_up: Path | None = None
    if "network" in SHOTS[contender]["before_down"]:
        warm_up = evidence.run(f"ground_{ground}_warm_up").folder
    clients = len(run.record["groups"])
    before = before_rounds(SHOTS[contender], clients, grouping, warm_up, "")
    return before + in_rounds(run.folder, 1, 1)


# Where groups are visible to it, a one-shot method on the ground of its own paper.
AT_HOME = {"disjoint": "flt", "rotation": "repa"}


@claim("GR-m", {"largest share": "<= 0.5"})
def one_shot_takes_half_of_cfl_s_rounds(evidence: Evidence) -> Measured:
    """Rounds to within a point of the end as a share of CFL's."""
    found = {
        f"{name}, {ground}": rounds(evidence, ground, name) / rounds(evidence, ground, "cfl")
        for ground, name in AT_HOME.items()
    }
    return {"largest share": max(found.values())} | found
