"""Which way of training is fastest for a network, a batch size and a machine: measured, and kept.

The first measurement decides for all runs of one kind, because the ways agree to rounding only.
"""

import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from clustered_fl.engine.training import PATHS, Engine, supported
from clustered_fl.engine.workers import Workers
from clustered_fl.engine.workload import Workload
from clustered_fl.errors import InputError
from clustered_fl.files import digest, read_json, replacing
from clustered_fl.models.numerics import NUMERICS

__numerics__ = NUMERICS

STEPS, REPETITIONS = 2, 4
CLIENTS = {"cpu": 4, "cuda": 32}
"""Clients that train in a measurement: a GPU is only filled by many."""
WORTH = 1.1
"""A way later in `PATHS` must be so much faster, so that noise decides less often."""


def calibrate(engine: Engine, folder: Path, tell: Callable[[str], None]) -> None:
    """Let `engine` use the fastest path for its kind of run, and `tell` the decision and why.

    Decisions are kept in `folder`, one file each; empty it to measure anew.

    Raises: InputError if one cannot be read.
    """
    kind = _kind(engine.workload)
    path = folder / f"{digest(kind)}.json"
    if not path.exists():
        _keep(path, {"kind": kind, "seconds_per_step": measure(engine.workload)})
    seconds = _kept(path)
    limit = WORTH * min(seconds.values())
    chosen = next(name for name in PATHS if seconds.get(name, float("inf")) <= limit)
    engine.use(chosen)
    times = ", ".join(f"{name} {1e3 * seconds[name]:.3g}" for name in seconds)
    tell(f"path {chosen} (ms per step and client: {times}; kept in {path})")


def measure(workload: Workload) -> dict[str, float]:
    """Seconds per step and client of each path that can train the workload, the best of a few.

    On a CPU these are CPU seconds, which other jobs disturb less, and `stacked` is left out: it is
    no faster there, and its bits depend on the size of the stack. Paths take turns.
    """
    short, cpu = _shortened(workload), workload.device.type == "cpu"
    clients = range(len(short.federation.train))
    steps = sum(len(short.batches(rows)) for rows in short.federation.train)
    start = torch.nn.utils.parameters_to_vector(short.network.parameters()).detach()
    starts = [start.to(short.device)] * len(clients)
    names = [name for name in supported(short) if not (cpu and name == "stacked")]
    paths = {name: PATHS[name](short, Workers(short, 1)) for name in names}
    clock = time.process_time if cpu else time.perf_counter
    best = dict.fromkeys(paths, float("inf"))
    for _ in range(REPETITIONS):  # the first compiles, and is never the best
        for name, path in paths.items():
            began = clock()
            float(path.train(starts, clients, 0)[0].sum())  # waits for a GPU
            best[name] = min(best[name], (clock() - began) / steps)
    return best


def _kind(workload: Workload) -> dict[str, Any]:
    """What the speed of a path depends on."""
    settings = asdict(workload.settings)
    return {
        "network": [list(p.shape) for p in workload.network.parameters()],
        "input": list(workload.task.x.shape[1:]),
        "batch_size": settings["batch_size"],
        "allowed": supported(workload),
        "stateful": settings["momentum"] > 0 or settings["optimiser"] == "adam",
        "proximal": settings["proximal"] > 0,
        "device": workload.device.type,
        "torch": torch.__version__,
    }


def _shortened(workload: Workload) -> Workload:
    """A few steps of a few clients."""
    most = STEPS * workload.settings.batch_size
    count = CLIENTS[workload.device.type]
    train = tuple(rows[:most] for rows in workload.federation.train[:count])
    federation = replace(workload.federation, train=train)
    return replace(workload, federation=federation, settings=replace(workload.settings, epochs=1))


def _kept(path: Path) -> dict[str, float]:
    """Seconds per step of each path that was measured; InputError if the file has no such."""
    found = read_json(path)
    seconds = found.get("seconds_per_step") if isinstance(found, dict) else None
    named = isinstance(seconds, dict) and seconds and seconds.keys() <= PATHS.keys()
    if not named or not all(isinstance(each, float) and each > 0 for each in seconds.values()):
        raise InputError(f"{path} is no measurement of paths; delete it to measure anew")
    return seconds


def _keep(path: Path, content: dict[str, Any]) -> None:
    """Write `path` unless another job was first."""
    beside = path.with_name(f"{path.name}.{os.getpid()}")
    with replacing(beside) as file:
        file.write_text(json.dumps(content, indent=1))
    with suppress(FileExistsError):
        os.link(beside, path)
    beside.unlink()
