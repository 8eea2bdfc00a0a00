"""Traffic between clients and server, counted from the recorded training rather than estimated.

A number takes four bytes. The ledger states what a method sends per round and before the first
(`clustered_fl.ledger.tables.Traffic`), records the size of a model and each round's participants.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from clustered_fl.records import index
from clustered_fl.records.reading import load_record, load_rounds

BYTES = 4

Cell = Mapping[str, Any]
"""A cell of the table as a notebook receives it: run, grouping, encoder, profiler, traffic."""


def in_rounds(folder: Path, down: int, up: int) -> int:
    """Bytes of all rounds of a run: `down` and `up` models each time that a client trains in it."""
    rounds, parameters = load_rounds(folder), int(load_record(folder)["parameters"])
    trained = int(((rounds["metric"] == "loss") & (rounds["scope"] == "client")).sum())
    return BYTES * trained * (down + up) * parameters


def sent(cell: Cell, records: pd.DataFrame, seed: int) -> int:
    """Bytes that one seed of a cell took, all clients and everything before the rounds included."""
    folder, traffic = index.folder(records, "run", cell["run"], seed), cell["traffic"]
    before = _before_rounds(cell, records, seed, len(load_record(folder)["groups"]))
    return before + in_rounds(folder, traffic["down"], traffic["up"])


def _before_rounds(cell: Cell, records: pd.DataFrame, seed: int, clients: int) -> int:
    """Bytes that are sent once, the rounds of a profiler included.

    The network of a profiler counts whole, also where a client needs only its encoder.
    """
    sizes, rounds = {"encoder": 0, "network": 0, "signature": 0}, 0
    if cell["encoder"]:
        record = load_record(index.folder(records, "encoder", cell["encoder"]))
        sizes["encoder"] = int(record["parameters"]["encoder"])
    if cell["profiler"]:
        profiler = index.folder(records, "run", cell["profiler"], seed)
        sizes["network"] = int(load_record(profiler)["parameters"])
        rounds = in_rounds(profiler, 1, 1)
    if cell["grouping"]:
        record = load_record(index.folder(records, "grouping", cell["grouping"], seed))
        sizes["signature"] = int(record["signature_size"])
    parts = [*cell["traffic"]["before_down"], *cell["traffic"]["before_up"]]
    return rounds + BYTES * clients * sum(sizes[part] for part in parts)
