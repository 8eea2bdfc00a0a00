"""One run: a federation, a model, local training, a method and a seed; it leaves one record."""

import os
import platform
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file

from clustered_fl import records
from clustered_fl.data import dataset as datasets
from clustered_fl.data import federation as federations
from clustered_fl.data.dataset import Dataset
from clustered_fl.data.federation import Federation
from clustered_fl.engine import checkpoint
from clustered_fl.engine.calibration import calibrate
from clustered_fl.engine.evaluation import evaluate
from clustered_fl.engine.task import build_task
from clustered_fl.engine.training import Engine
from clustered_fl.engine.workload import LocalSettings
from clustered_fl.errors import InputError
from clustered_fl.files import digest, replacing, write_json
from clustered_fl.methods import load_method
from clustered_fl.methods.state import Row, State
from clustered_fl.models import build_model
from clustered_fl.options import call

PROGRESS_SECONDS = 10


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


def choose_device(name: str) -> torch.device:
    """The device called `name`: "cpu", "cuda" or "auto" (CUDA where there is one).

    Raises:
        InputError: if CUDA is asked for and absent.
    """
    if name == "cuda" and not torch.cuda.is_available():
        raise InputError("device cuda asked for but no CUDA GPU is visible; use device=cpu or auto")
    cuda = name == "cuda" or (name == "auto" and torch.cuda.is_available())
    return torch.device("cuda" if cuda else "cpu")


def build_engine(
    config: dict[str, Any],
    dataset: Dataset,
    federation: Federation,
    device: torch.device,
    workers: int,
) -> Engine:
    """The engine of a run.

    Raises:
        InputError: if the model or the local training cannot be built from `config`.
    """
    model = dict(config["model"])
    length, normalise = model.pop("length", 0), tuple(model.pop("normalise", (0.0, 1.0)))
    task = build_task(dataset, device, normalise, length, model.get("vocabulary", 0))
    build = partial(
        build_model,
        image_shape=dataset.x.shape[1:],
        classes=len(dataset.classes),
        **model,
    )
    local = call(LocalSettings, "local training", config["training"])
    return Engine(build, task, federation, local, config["seed"], device, workers)


def begin(config: dict[str, Any], engine: Engine) -> Run:
    """A run before its first round."""
    options = dict(config["method"])
    name = options.pop("name", "")
    method = load_method(name)
    settings = call(method.Settings, f"method {name}", options)
    return Run(config, method, settings, engine, method.init(engine, settings))


def step(run: Run) -> None:
    """One round, with the evaluation before it when it is due."""
    started = time.monotonic()
    if run.completed % run.config["evaluate_every"] == 0:
        run.rows += _scores(run)
    run.state, rows = run.method.round_(run.state, run.engine, run.settings, run.completed)
    run.rows += rows
    run.completed += 1
    run.seconds += time.monotonic() - started


def _scores(run: Run) -> list[Row]:
    """Test score of every client under its group's model after the completed rounds."""
    clients = list(range(run.engine.federation.clients))
    values = evaluate(run.engine, run.state.models, clients, run.state.grouping)
    metric = run.engine.task.metric
    return [
        (run.completed, "client", c, metric, float(v)) for c, v in zip(clients, values, strict=True)
    ]


def train(run: Run, saved: Path, identity: str, every: int, tell: Callable[[str], None]) -> None:
    """Carry a run to its end, from its checkpoint where there is one.

    Args:
        run: as `begin` made it.
        saved: where the checkpoint lies.
        identity: digest of everything the run depends on.
        every: rounds between two checkpoints.
        tell: receives a line of progress at least every ten seconds that a round allows.
    """
    _resume(run, saved, identity, tell)
    total, first, began, told = run.config["rounds"], run.completed, time.monotonic(), 0.0
    while run.completed < total and not run.state.finished:
        step(run)
        if time.monotonic() - told > PROGRESS_SECONDS or run.completed == total:
            rate = (run.completed - first) / (time.monotonic() - began)
            tell(_progress(run, rate))
            told = time.monotonic()
        if run.completed % every == 0:
            _save(run, saved, identity)
    run.rows += _scores(run)


def _progress(run: Run, rate: float) -> str:
    metric = run.engine.task.metric
    last = [row[4] for row in run.rows if row[3] == metric][-run.engine.federation.clients :]
    left = (run.config["rounds"] - run.completed) / rate
    score = f"{metric} {np.mean(last):.4g}" if last else f"{metric} not yet measured"
    return (
        f"round {run.completed}/{run.config['rounds']}  {rate:.2f} rounds/s  {score}  "
        f"{len(run.state.models)} group(s)  {left / 60:.1f} min left"
    )


def _save(run: Run, path: Path, identity: str) -> None:
    tensors, content = run.state.pack()
    content = {"state": content, "rows": run.rows}
    content |= {"completed": run.completed, "seconds": run.seconds}
    checkpoint.save(path, identity, tensors, content)


def _resume(run: Run, path: Path, identity: str, tell: Callable[[str], None]) -> None:
    found = checkpoint.load(path, identity)
    if found is None:
        return
    tensors, content = found
    tensors = {name: tensor.to(run.engine.device) for name, tensor in tensors.items()}
    run.state = State.unpack(tensors, content["state"])
    run.rows = [tuple(row) for row in content["rows"]]
    run.completed, run.seconds = content["completed"], content["seconds"]
    tell(f"continuing after round {run.completed}")


def execute(
    config: dict[str, Any],
    data: Path,
    federation: Path,
    out: Path,
    saved: Path,
    paths: Path,
    code: str,
    device: str,
    path: str,
    workers: int,
    tell: Callable[[str], None],
) -> None:
    """Compute a run and write its record to `out`.

    Args:
        config: resolved run: run, paper, scale, seed, model, training, method, rounds, ...
        data, federation: files of the dataset and the federation.
        out: folder of the record.
        saved: checkpoint file, deleted when the record is whole.
        paths: folder of calibrations, see `engine.calibration`.
        code: fingerprint of the code that computes the run.
        device: "cpu", "cuda" or "auto".
        path: how clients are trained, key of `PATHS`, or "auto" for the fastest.
        workers: threads.
        tell: receives progress.
    """
    place = choose_device(device)
    _make_deterministic(place)
    dataset, (clients, clients_digest) = datasets.load(data), federations.load(federation)
    engine = build_engine(config, dataset, clients, place, workers)
    if path == "auto":
        calibrate(engine, paths, tell)
    else:
        engine.use(path)
    run = begin(config, engine)
    machine = [str(place), engine.path, torch.__version__]
    identity = digest([config, code, dataset.digest, clients_digest, *machine])
    with checkpoint.sole_owner(saved):
        train(run, saved, identity, config["checkpoint_every"], tell)
        tell(f"{run.seconds:.0f} s, peak memory {_peak_memory()} MB")
        write(run, dataset, clients_digest, code, out, workers)
        saved.unlink(missing_ok=True)


def _make_deterministic(device: torch.device) -> None:
    """Let PyTorch compute the same bits in every run, one thread per operation."""
    torch.set_num_threads(1)  # parallelism is over clients; threads inside an operation collapse
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = False  # costs a pass over every buffer
    if device.type == "cuda":  # what deterministic products need, before the first of them
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")


def write(
    run: Run, dataset: Dataset, clients_digest: str, code: str, out: Path, workers: int
) -> None:
    """Write the four files of a record; record.json last: its presence means a whole one."""
    tensors = {f"node{leaf}.model": run.state.models[g] for g, leaf in enumerate(run.state.leaves)}
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
    about = ("name", "source", "digest", "train_rows", "complete", "note")
    return {
        "config": run.config,
        "config_digest": digest(run.config),
        "code": code,
        "data": {name: getattr(dataset, name) for name in about} | {"rows": len(dataset.y)},
        "federation_digest": clients_digest,
        "label_maps": federation.label_maps.tolist(),
        "versions": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "numpy": np.__version__,
        },
        "device": _device_name(run.engine.device),
        "path": run.engine.path,
        "parameters": state.models.shape[1],
        "metric": run.engine.task.metric,
        "rounds": run.completed,
        "groups": [state.leaves[group] for group in state.grouping],
        "true_groups": federation.groups[: federation.clients].tolist(),
        "tree": state.pack()[1]["tree"],
        "newcomers": newcomers,
    }


def _cost(run: Run, workers: int) -> dict[str, Any]:
    seconds = round(run.seconds, 1)
    return {"seconds": seconds, "peak_memory_mb": _peak_memory(), "threads": workers}


def _peak_memory() -> int:
    """The largest resident memory of this process so far, in MB."""
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(kilobytes / (2**20 if sys.platform == "darwin" else 2**10))  # macOS reports bytes


def _device_name(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
