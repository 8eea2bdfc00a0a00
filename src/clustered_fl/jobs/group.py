"""One grouping: which clients are related, found once before training; it leaves a record."""

import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from clustered_fl.data import dataset as datasets
from clustered_fl.data import federation as federations
from clustered_fl.encoders.storage import load_encoder
from clustered_fl.errors import InputError
from clustered_fl.files import replacing, write_json
from clustered_fl.groupings import grouping_module
from clustered_fl.groupings.agreement import agreement
from clustered_fl.groupings.clients import clients_of
from clustered_fl.options import call
from clustered_fl.records import reading as records
from clustered_fl.records import relatedness
from clustered_fl.records.machine import described, peak_memory


def execute(
    config: dict[str, Any],
    data: Path,
    federation: Path,
    encoder: Path | None,
    out: Path,
    origin: records.Origin,
    tell: Callable[[str], None],
) -> None:
    """Find a grouping and write it with its record to `out`.

    `encoder` is the folder of the encoder, or of the run that is the profiler, where one is needed.

    Raises: InputError if the method cannot profile clients by a run, or do what is asked for.
    """
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    began, dataset = time.monotonic(), datasets.load(data, config.get("dataset"))
    known, federation_digest = federations.load(federation, dataset.digest)
    clients, options = clients_of(dataset, known), dict(config["method"])
    method = import_module(grouping_module(name := options.pop("name", "")))
    settings = call(method.Settings, f"grouping {name}", options)
    if not config.get("profiler"):
        network = load_encoder(encoder) if encoder else None
    elif hasattr(method, "profile"):
        network = method.profile(encoder, dataset, known)
    else:
        raise InputError(f"grouping {name} uses no run; name an encoder in place of the profiler")
    found, compared = method.relate(clients, network, settings, config["seed"])
    measured = agreement(found.related, clients.groups)
    tell(f"{len(set(found.groups.tolist()))} groups of {clients.number} clients, {measured}")
    relatedness.save(found, out)
    with replacing(out / relatedness.COMPARISONS) as beside:
        pd.DataFrame(compared).to_parquet(beside, index=False)
    cost = {"seconds": round(time.monotonic() - began, 1), "peak_memory_mb": peak_memory()}
    write_json(out / records.COST, cost | {"threads": 1})
    record = described(config, origin, torch.device("cpu")) | {
        "data": dataset.described,
        "federation_digest": federation_digest,
        "agreement": measured,
        "score": measured["ari"],
        "signature_size": int(found.signatures[0].size),
        "groups": found.groups.tolist(),
        "true_groups": clients.groups.tolist(),
        "placed": found.placed.tolist(),
        "true_newcomers": known.groups[clients.number :].tolist(),
    }
    write_json(out / records.RECORD, record)
