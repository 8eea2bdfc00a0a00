"""One grouping: who is related to whom, found once before training; it leaves a record."""

import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd
import torch

from clustered_fl import records, relatedness
from clustered_fl.data import dataset as datasets
from clustered_fl.data import federation as federations
from clustered_fl.data.dataset import Dataset
from clustered_fl.data.federation import Federation
from clustered_fl.encoders.storage import load_encoder
from clustered_fl.errors import InputError
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
        encoder: folder of the encoder, or of the run that is the profiler; None where the method
            needs neither.
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
    network = _network(config, method, encoder, dataset, known)
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


def _network(
    config: dict[str, Any],
    method: ModuleType,
    folder: Path | None,
    dataset: Dataset,
    federation: Federation,
) -> Any:
    """What the method embeds images with: an encoder, what it makes of a run, or nothing.

    Raises:
        InputError: if the method cannot profile clients by a run.
    """
    if folder is None:
        return None
    if not config.get("profiler"):
        return load_encoder(folder)
    if not hasattr(method, "profile"):
        name = config["method"]["name"]
        raise InputError(f"grouping {name} uses no run; name an encoder in place of the profiler")
    return method.profile(folder, dataset, federation)
