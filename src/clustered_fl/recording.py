"""What is written of a run; `clustered_fl.records` says what the files hold."""

from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from safetensors.torch import save_file

from clustered_fl import records
from clustered_fl.data.dataset import Dataset
from clustered_fl.engine.training import Engine
from clustered_fl.files import digest, replacing, write_json
from clustered_fl.machine import device_name, peak_memory, versions
from clustered_fl.methods.state import Row, State

KEPT_BYTES = 2**26
"""Models of all groups together that are kept: a record of thousands of clients stays small."""


@dataclass
class Run:
    """A run in progress.

    Attributes:
        config: the run as the ledger states it, resolved for one scale and seed.
        method, settings: the method's module and its settings.
        engine: trains and evaluates.
        state: models and grouping.
        rows: measurements so far.
        completed: rounds done.
        seconds: spent so far, interruptions not counted.
    """

    config: dict[str, Any]
    method: ModuleType
    settings: Any
    engine: Engine
    state: State
    rows: list[Row] = field(default_factory=list)
    completed: int = 0
    seconds: float = 0.0


def write(
    run: Run, dataset: Dataset, clients_digest: str, code: str, out: Path, workers: int
) -> None:
    """Write the four files of a record; record.json last: its presence means a whole one."""
    models = run.state.models
    small = models.numel() * models.element_size() <= KEPT_BYTES
    kept = enumerate(run.state.leaves) if small else ()
    tensors = {f"node{leaf}.model": models[group] for group, leaf in kept}
    tensors |= run.state.cached
    tensors = {name: tensor.cpu().contiguous() for name, tensor in sorted(tensors.items())}
    with replacing(out / records.MODELS) as beside:
        save_file(tensors, beside)
    records.write_rounds(out / records.ROUNDS, run.rows)
    write_json(out / records.COST, _cost(run, workers))
    write_json(out / records.RECORD, _record(run, dataset, clients_digest, code))


def _record(run: Run, dataset: Dataset, clients_digest: str, code: str) -> dict[str, Any]:
    state, federation = run.state, run.engine.federation
    newcomers = []
    if federation.newcomers and hasattr(run.method, "assign_newcomers"):
        newcomers = run.method.assign_newcomers(state, run.engine, run.settings, run.completed)
    return {
        "config": run.config,
        "config_digest": digest(run.config),
        "code": code,
        "data": dataset.described,
        "federation_digest": clients_digest,
        "label_maps": _other_names(federation.label_maps),
        "versions": versions(),
        "device": device_name(run.engine.device),
        "path": run.engine.path,
        "parameters": state.models.shape[1],
        "metric": run.engine.task.metric,
        "test_rows": len(np.unique(np.concatenate(federation.test_sets))),
        "rounds": run.completed,
        "groups": [state.leaves[group] for group in state.grouping],
        "true_groups": federation.groups[: federation.clients].tolist(),
        "tree": state.pack()[1]["tree"],
        "newcomers": newcomers,
    }


def _other_names(label_maps: np.ndarray) -> list[list[int]]:
    """Label maps [clients, classes], [] where everybody calls everything by its name."""
    same = (label_maps == np.arange(label_maps.shape[1])).all()
    return [] if same else label_maps.tolist()


def _cost(run: Run, workers: int) -> dict[str, Any]:
    seconds = round(run.seconds, 3)  # a tiny run takes hundredths
    return {"seconds": seconds, "peak_memory_mb": peak_memory(), "threads": workers}
