"""One row per run and seed: method, score and groups."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from clustered_fl.metrics import agreement
from clustered_fl.metrics.curves import final
from clustered_fl.records import index
from clustered_fl.records.reading import load_record, load_rounds

_WORDS = {
    ("auto", True): "splits by criteria",
    ("permute", True): "hidden parameters",
    ("linkage", "complete"): "complete linkage",
}


def overview(runs: pd.DataFrame) -> pd.DataFrame:
    """The final state of all runs and seeds in an index of records.

    Columns: run, seed, method, rounds, score (mean over clients), lowest and highest (of a client),
    groups, agreement (adjusted Rand index with the true groups), splits (rounds), seconds.
    """
    rows = []
    for run, seed, folder in index.each(runs):
        record = load_record(folder)
        scores = final(load_rounds(folder), record["metric"])
        splits = sorted({node["split_round"] for node in record["tree"] if node["children"]})
        method = describe_method(record["config"]["method"])
        about = {"run": run, "seed": seed, "method": method, "rounds": record["rounds"]}
        about |= {"score": scores.mean(), "lowest": scores.min(), "highest": scores.max()}
        about["groups"] = len(set(record["groups"]))
        about["agreement"] = agreement.index(record["true_groups"], record["groups"])
        about |= {"splits": ", ".join(map(str, splits)), "seconds": record["cost"]["seconds"]}
        rows.append(about)
    return pd.DataFrame(rows)


def describe_method(settings: Mapping[str, Any]) -> str:
    """A method with its distinguishing settings, such as "cfl, complete linkage"."""
    special = [words for (key, value), words in _WORDS.items() if settings.get(key) == value]
    return ", ".join([settings["name"], *special])
