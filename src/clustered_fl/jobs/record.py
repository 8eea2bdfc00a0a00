"""Writing of a run's record; `clustered_fl.records.reading` describes the files."""

from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from safetensors.torch import save_file

from clustered_fl.data.dataset import Dataset
from clustered_fl.engine.training import Engine
from clustered_fl.files import replacing
from clustered_fl.methods.state import State
from clustered_fl.models.numerics import NUMERICS
from clustered_fl.records import reading as records
from clustered_fl.records import seal
from clustered_fl.records.machine import described, peak_memory
from clustered_fl.records.measurements import Measurements

KEPT_BYTES = 2**26
"""Most bytes of all groups' models in a record, so that one of thousands of clients is small."""
Config = dict[str, Any]
"""A job's configuration in a ledger, resolved for one scale and seed."""


@dataclass
class Run:
    """A run in progress, with the method's module and the measurements so far (`rows`).

    `seconds` is the wall time of its `completed` rounds without interruptions, and `cpu_seconds`
    the CPU time of all its threads, which other jobs affect less.
    """

    config: Config
    method: ModuleType
    settings: Any
    engine: Engine
    state: State
    rows: Measurements = field(default_factory=Measurements)
    completed: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0


def write(
    run: Run, dataset: Dataset, clients_digest: str, origin: records.Origin, out: Path, workers: int
) -> None:
    """Write the four files of a record; record.json last, as a mark that it is complete."""
    models = run.state.models
    small = models.numel() * models.element_size() <= KEPT_BYTES
    kept = enumerate(run.state.leaves) if small else ()
    tensors = {f"node{leaf}.model": models[group] for group, leaf in kept} | run.state.cached
    tensors = {name: tensor.cpu().contiguous() for name, tensor in sorted(tensors.items())}
    with replacing(out / records.MODELS) as beside:
        save_file(tensors, beside)
    records.write_rounds(out / records.ROUNDS, run.rows)
    # Three digits, because a tiny run takes hundredths of a second.
    cost = {"seconds": round(run.seconds, 3), "cpu_seconds": round(run.cpu_seconds, 3)}
    cost |= {"peak_memory_mb": peak_memory(), "threads": workers}
    record = _record(run, dataset, clients_digest, origin)
    seal.write(out, record, cost, (records.ROUNDS, records.MODELS))


def _record(
    run: Run, dataset: Dataset, clients_digest: str, origin: records.Origin
) -> dict[str, Any]:
    state, federation, newcomers = run.state, run.engine.federation, []
    if federation.newcomers and hasattr(run.method, "assign_newcomers"):
        newcomers = run.method.assign_newcomers(state, run.engine, run.settings, run.completed)
    maps, metric = federation.label_maps, run.engine.task.metric
    own_names = bool((maps == np.arange(maps.shape[1])).all())
    return described(run.config, origin, run.engine.device) | {
        "data": dataset.described,
        "federation_digest": clients_digest,
        "label_maps": [] if own_names else maps.tolist(),
        "path": run.engine.path,
        "numerics": NUMERICS,
        "parameters": state.models.shape[1],
        "metric": metric,
        "test_rows": len(np.unique(np.concatenate(federation.test_sets))),
        "rounds": run.completed,
        "score": float(np.mean(run.rows.last(metric))),
        "groups": [state.leaves[group] for group in state.grouping],
        "true_groups": federation.groups[: federation.clients].tolist(),
        "tree": state.pack()[1]["tree"],
        "newcomers": newcomers,
    }
