"""What a claim measures of a contender on a ground: `ground_<ground>_<contender>` is its run.

Names of grounds have no underscore, those of contenders may.
"""

import numpy as np
import pandas as pd

from clustered_fl.claims.evidence import Evidence
from clustered_fl.metrics import accuracy, agreement, matrix

PAPER = "ground"


def contenders(evidence: Evidence) -> dict[str, list[str]]:
    """Ground -> contenders whose runs are there; warm-ups are none."""
    found: dict[str, list[str]] = {}
    for family in evidence.runs:
        paper, ground, name = family.split("_", 2)
        if paper == PAPER and ground != "groups" and name != "warm_up":
            found.setdefault(ground, []).append(name)
    return found


def grounds_of(evidence: Evidence, contender: str) -> list[str]:
    """Grounds on which a contender's run is there."""
    return [ground for ground, names in contenders(evidence).items() if contender in names]


def scores(evidence: Evidence, ground: str, contender: str) -> pd.DataFrame:
    """Accuracy in % by round and client."""
    return accuracy.client_scores(evidence.run(f"{PAPER}_{ground}_{contender}").folder)


def ends(evidence: Evidence, ground: str, contender: str) -> pd.Series:
    """Accuracy in % of every client at the end."""
    return accuracy.at_last(scores(evidence, ground, contender))


def mean(evidence: Evidence, ground: str, contender: str) -> float:
    """Accuracy in %, mean over clients at the end."""
    return float(ends(evidence, ground, contender).mean())


def worst(evidence: Evidence, ground: str, contender: str) -> float:
    """Accuracy in % of the worst tenth of clients at the end."""
    return matrix.worst_tenth(ends(evidence, ground, contender).to_numpy())


def rounds(evidence: Evidence, ground: str, contender: str) -> float:
    """First tested round within a point of the end."""
    return matrix.converged(scores(evidence, ground, contender))


def seen(evidence: Evidence, ground: str, contender: str) -> float:
    """Agreement of a run's last groups with the true ones."""
    record = evidence.run(f"{PAPER}_{ground}_{contender}").record
    return agreement.index(record["true_groups"], record["groups"])


def surplus(evidence: Evidence, ground: str, contender: str) -> float:
    """Number of groups at the end minus that of the true ones."""
    record = evidence.run(f"{PAPER}_{ground}_{contender}").record
    return float(len(set(record["groups"])) - len(np.unique(record["true_groups"])))


def grouped(evidence: Evidence, ground: str, contender: str) -> dict[str, float]:
    """Agreement of a grouping that was found before training: ari, components, ..."""
    return evidence.grouping(f"{PAPER}_groups_{ground}_{contender}").record["agreement"]
