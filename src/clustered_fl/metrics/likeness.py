"""How well groupings by profiles know whose data are alike: labels, and pipelines where they drift.

REPA compares pipelines with the help of a network that it does not name. Ours is that of the run
that profiles the clients, so that two groupings would have two judges; all groupings of the same
clients are held against the first that has compared pipelines.
"""

from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from clustered_fl.files import digest
from clustered_fl.metrics.correlation import correlation, label_similarity
from clustered_fl.metrics.curves import Folders
from clustered_fl.metrics.profiles import has_measured, label_counts, pairwise
from clustered_fl.metrics.uniformity import mean_within
from clustered_fl.records import load_record

Kind = Literal["labels", "pipelines"]
KINDS: tuple[Kind, ...] = ("labels", "pipelines")


class Judges:
    """What is known of the similarity S(i, j) of the training clients of some groupings.

    Args:
        groupings: name -> seed -> folder.
    """

    def __init__(self, groupings: Folders) -> None:
        self._pipelines: dict[str, np.ndarray] = {}
        folders = (Path(folder) for seeds in groupings.values() for folder in seeds.values())
        for folder in folders:
            if has_measured(folder, "similarity"):
                (found,) = pairwise(folder, "similarity").values()
                self._pipelines.setdefault(_clients(folder), found)

    def similarity(self, folder: Path, kind: Kind) -> np.ndarray | None:
        """S of the clients of the grouping in `folder` [M, M]; None if nobody has compared them."""
        if kind == "pipelines":
            return self._pipelines.get(_clients(folder))
        number = len(load_record(folder)["groups"])
        return label_similarity(label_counts(folder)[:number])


def _clients(folder: Path) -> str:
    """What groupings of the same clients have in common."""
    config = load_record(folder)["config"]
    return digest([config[part] for part in ("dataset", "federation", "seed")])


def by_seed(groupings: Folders) -> pd.DataFrame:
    """What each grouping and seed knows of labels and pipelines.

    Returns:
        Columns grouping, seed, kind ("labels" or "pipelines"), correlation (of S with the cosine of
        the vectors), within (mean S within clusters, as eq. 7 has it for labels), overall (mean S
        over all pairs: what clusters drawn by lot have). NaN where S is not known.
    """
    judges = Judges(groupings)
    rows = [
        {"grouping": name, "seed": int(seed), "kind": kind} | _row(Path(folder), kind, judges)
        for name, seeds in groupings.items()
        for seed, folder in seeds.items()
        for kind in KINDS
    ]
    return pd.DataFrame(rows)


def _row(folder: Path, kind: Kind, judges: Judges) -> dict[str, Any]:
    similar = judges.similarity(folder, kind)
    if similar is None:
        return dict.fromkeys(("correlation", "within", "overall"), float("nan"))
    record, cosines = load_record(folder), pairwise(folder, "cosine")
    groups, now = np.array(record["groups"]), record["config"]["method"].get("round")
    return {
        "correlation": correlation(similar, cosines[now or max(cosines)]),
        "within": mean_within(groups, similar),
        "overall": mean_within(np.zeros_like(groups), similar),
    }
