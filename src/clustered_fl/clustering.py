"""One grouping: who is related to whom, found once before training; it leaves a record."""

import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from clustered_fl import records, relatedness
from clustered_fl.data import dataset as datasets
from clustered_fl.data import federation as federations
from clustered_fl.encoders.storage import load_encoder
from clustered_fl.files import digest, replacing, write_json
from clustered_fl.groupings import grouping_module
from clustered_fl.groupings.agreement import agreement
from clustered_fl.groupings.clients import clients_of
from clustered_fl.machine import device_name, peak_memory, versions
from clustered_fl.options import call


def execute(
    config: dict[str, Any],
    data: Path,
    federation: Path,
    encoder: Path | None,
    out: Path,
    code: str,
    tell: Callable[[str], None],
) -> None:
    """Find a grouping and write it with its record to `out`.

    Args:
        config: as the ledger states it, resolved for one scale and seed.
        data, federation: files of the dataset and the federation.
        encoder: folder of the encoder, where the method needs one.
        out: folder.
        code: fingerprint of the code that computes it.
        tell: receives progress.
    """
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    began, dataset = time.monotonic(), datasets.load(data)
    known, federation_digest = federations.load(federation)
    clients, options = clients_of(dataset, known), dict(config["method"])
    method = import_module(grouping_module(name := options.pop("name", "")))
    settings = call(method.Settings, f"grouping {name}", options)
    network = load_encoder(encoder) if encoder else None
    found, compared = method.relate(clients, network, settings, config["seed"])
    measured = agreement(found.related, clients.groups)
    tell(f"{len(set(found.groups.tolist()))} groups of {clients.number} clients, {measured}")
    relatedness.save(found, out)
    with replacing(out / relatedness.COMPARISONS) as beside:
        pd.DataFrame(compared).to_parquet(beside, index=False)
    cost = {"seconds": round(time.monotonic() - began, 1), "peak_memory_mb": peak_memory()}
    write_json(out / records.COST, cost | {"threads": 1})
    record = {
        "config": config,
        "config_digest": digest(config),
        "code": code,
        "data": dataset.described,
        "federation_digest": federation_digest,
        "agreement": measured,
        "groups": found.groups.tolist(),
        "true_groups": clients.groups.tolist(),
        "placed": found.placed.tolist(),
        "true_newcomers": known.groups[clients.number :].tolist(),
        "device": device_name(torch.device("cpu")),
        "versions": versions(),
    }
    write_json(out / records.RECORD, record)
