"""What clients and server have sent each other, counted from what was trained and not estimated.

A number takes four bytes. What the contender sends per round and before the first stands in the
ledger (`clustered_fl.grounds.Traffic`); how long a model is, and who took part in which round, in
the records.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from clustered_fl import relatedness
from clustered_fl.metrics.curves import Folders
from clustered_fl.records import load_record, load_rounds

BYTES = 4

Sources = Mapping[str, Mapping[int | str, str]]
"""Run, grouping or encoder -> seed -> folder; an encoder has one seed for all."""


def participations(folder: Path) -> int:
    """How often a client has trained in a run: clients times rounds, if all take part in all."""
    rounds = load_rounds(folder)
    return int(((rounds["metric"] == "loss") & (rounds["scope"] == "client")).sum())


def in_rounds(folder: Path, down: int, up: int) -> int:
    """Bytes of all rounds of a run.

    Args:
        folder: of its record.
        down, up: models that a participant receives and returns in a round.
    """
    parameters = int(load_record(folder)["parameters"])
    return BYTES * participations(folder) * (down + up) * parameters


def before_rounds(
    row: Mapping[str, Any], clients: int, grouping: Path | None, warm_up: Path | None, encoder: str
) -> int:
    """Bytes that are sent once, the rounds of a warm-up included.

    The network of a warm-up counts whole whenever it is sent: who has an encoder only would need
    less than that once, and has received it with the rest in every round before.

    Args:
        row: before_down and before_up, as the ledger has them.
        clients: all that are grouped.
        grouping, warm_up: folders of these records, None where there are none.
        encoder: folder of the encoder, "" for none.
    """
    sizes = {"encoder": 0, "network": 0, "signature": 0}
    sent = 0
    if encoder:
        sizes["encoder"] = int(load_record(Path(encoder))["parameters"]["encoder"])
    if warm_up:
        sizes["network"] = int(load_record(warm_up)["parameters"])
        sent += in_rounds(warm_up, 1, 1)
    if grouping:
        sizes["signature"] = relatedness.load(grouping).signatures[0].size
    parts = [*row["before_down"], *row["before_up"]]
    return sent + BYTES * clients * sum(sizes[part] for part in parts)


def sent(
    row: Mapping[str, Any],
    seed: int | str,
    runs: Mapping[str, Folders],
    groupings: Folders,
    encoders: Mapping[str, str],
) -> int:
    """Bytes that one seed of a contender's run took, all clients and everything before included.

    Args:
        row: of the parameter `rows`: run, grouping, warm_up, encoder, down, up, before_down,
            before_up.
        runs: entry of the ledger -> run -> seed -> folder.
        groupings: name -> seed -> folder.
        encoders: name -> folder.
    """
    folder = Path(runs[row["run"]][row["run"]][seed])
    clients = len(load_record(folder)["groups"])
    grouping = Path(groupings[row["grouping"]][seed]) if row["grouping"] else None
    name = row["warm_up"]
    warm_up = Path(runs[name][name][seed]) if name else None
    encoder = encoders[row["encoder"]] if row["encoder"] else ""
    before = before_rounds(row, clients, grouping, warm_up, encoder)
    return before + in_rounds(folder, row["down"], row["up"])
