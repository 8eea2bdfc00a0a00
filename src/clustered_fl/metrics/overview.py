"""One row per run and seed: what was trained, how well it scores, which groups it found."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from clustered_fl.metrics import agreement
from clustered_fl.metrics.curves import Folders, final
from clustered_fl.records import load_record, load_rounds


def overview(families: Mapping[str, Folders]) -> pd.DataFrame:
    """The final state of all runs and seeds of these families.

    Returns:
        Columns run, seed, method, rounds, score (mean over clients at the end), lowest and
        highest (score of a client), groups, agreement (adjusted Rand index with the true groups),
        splits (rounds after which groups were split), seconds.
    """
    rows = [
        {"run": run, "seed": int(seed)} | _state(Path(folder))
        for runs in families.values()
        for run, seeds in runs.items()
        for seed, folder in seeds.items()
    ]
    return pd.DataFrame(rows)


def _state(folder: Path) -> dict[str, Any]:
    record = load_record(folder)
    scores = final(load_rounds(folder), record["metric"])
    splits = sorted({node["split_round"] for node in record["tree"] if node["children"]})
    return {
        "method": describe_method(record["config"]["method"]),
        "rounds": record["rounds"],
        "score": scores.mean(),
        "lowest": scores.min(),
        "highest": scores.max(),
        "groups": len(set(record["groups"])),
        "agreement": agreement.index(record["true_groups"], record["groups"]),
        "splits": ", ".join(map(str, splits)),
        "seconds": record["cost"]["seconds"],
    }


_WORDS = {
    ("auto", True): "splits by criteria",
    ("permute", True): "hidden parameters",
    ("linkage", "complete"): "complete linkage",
}


def describe_method(settings: Mapping[str, Any]) -> str:
    """A method and what is special about its settings, in words: "cfl, complete linkage"."""
    special = [words for (key, value), words in _WORDS.items() if settings.get(key) == value]
    return ", ".join([settings["name"], *special])
