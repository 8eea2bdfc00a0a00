"""The result of a step in one line: the last line of its log, which the terminal shows."""

from pathlib import Path

import numpy as np

from clustered_fl.data.dataset import Dataset
from clustered_fl.data.federation import Federation
from clustered_fl.records import seal


def of_dataset(dataset: Dataset) -> str:
    """Numbers of rows, and the source."""
    rows = f"{dataset.train_rows:,} training and {len(dataset.y) - dataset.train_rows:,} test rows"
    return f"{rows}, {dataset.source}"


def of_federation(federation: Federation) -> str:
    """Numbers of clients, of true groups if there are several, and of training rows."""
    groups = len(np.unique(federation.groups[: federation.clients]))
    least, most = federation.sizes.min(), federation.sizes.max()
    held = f"{least:,}" if least == most else f"{least:,} to {most:,}"
    groups_of = f" in {groups} groups" if groups > 1 else ""
    return f"{federation.clients} clients{groups_of}, {held} training rows each"


def of_run(folder: Path) -> str:
    """Mean score of the clients at the end, numbers of rounds and of groups with a model."""
    record = seal.read_record(folder)
    groups = len(set(record["groups"]))
    models = f"{groups} group{'s' if groups > 1 else ''}"
    return f"{record['metric']} {record['score']:.3g} after {record['rounds']} rounds, {models}"


def of_grouping(folder: Path) -> str:
    """Numbers of clients and groups, and the agreement with true groups if there are several."""
    record = seal.read_record(folder)
    found, clients = len(set(record["groups"])), len(record["groups"])
    told = f"{clients} clients in {found} group{'s' if found > 1 else ''}"
    several = len(set(record["true_groups"])) > 1
    return told + (f", adjusted Rand index {record['score']:.2f}" if several else "")


def of_encoder(folder: Path) -> str:
    """Reconstruction error on test images with values in 0..1."""
    return f"mean squared error {seal.read_record(folder)['score']:.4f} on test images"


def of_study(folder: Path) -> str:
    """Names of its tables."""
    tables = seal.read_record(folder)["tables"]
    return f"{len(tables)} tables: {', '.join(tables)}" if len(tables) > 1 else f"table {tables[0]}"
