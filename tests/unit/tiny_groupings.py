"""Made-up groupings, small enough to know every number."""

from pathlib import Path

import numpy as np
import pandas as pd

from clustered_fl.files import write_json
from clustered_fl.groupings.agreement import agreement
from clustered_fl.groupings.distances import components
from clustered_fl.records import reading as records
from clustered_fl.records import relatedness
from clustered_fl.records.relatedness import Relatedness


def trial(**changes) -> dict:
    """One row of a table of comparisons."""
    row = {"k": 5, "distance": "minimum", "gamma": 1.0, "umap_seed": 0, "ari": 1.0}
    return row | {"components": 2.0, "recall": 1.0, "false_edges": 0.0} | changes


def blocks(groups: list[int]) -> np.ndarray:
    """All clients of a group related to each other."""
    names = np.array(groups)
    return (names[:, None] == names[None, :]).astype(np.uint8)


def write(
    folder: Path,
    truth: list[int],
    related: np.ndarray | None = None,
    trials: list[dict] = (),
    groups: list[int] | None = None,
    signatures: np.ndarray | None = None,
    points: np.ndarray | None = None,
) -> Path:
    """Write a grouping as `clustering.execute` does."""
    folder.mkdir(parents=True)
    clients = len(truth)
    related = blocks(truth) if related is None else related
    sent = np.zeros((clients, 1, 3), np.float32) if signatures is None else signatures
    found = Relatedness(
        related,
        components(related) if groups is None else np.array(groups),
        np.zeros(0, np.int64),
        np.zeros((0, 0), np.uint8),
        np.zeros((clients, clients), np.float32),
        sent,
        np.zeros((clients, 1, 2), np.float32) if points is None else points,
    )
    relatedness.save(found, folder)
    pd.DataFrame(list(trials) or [trial()]).to_parquet(folder / relatedness.COMPARISONS)
    record = {"true_groups": truth, "agreement": agreement(related, np.array(truth))}
    write_json(folder / records.RECORD, record | {"signature_size": sent[0].size})
    write_json(folder / records.COST, {"seconds": 1.0})
    return folder
