"""One run: a federation, a model, local training, a method and a seed; it leaves one record."""

import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch

from clustered_fl import relatedness
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
from clustered_fl.files import digest
from clustered_fl.machine import peak_memory
from clustered_fl.methods import load_method
from clustered_fl.methods.state import Row, State
from clustered_fl.models import RECONSTRUCTING_MODELS, build_model
from clustered_fl.options import call
from clustered_fl.recording import Run, write

PROGRESS_SECONDS = 10


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
    reconstructs = model["name"] in RECONSTRUCTING_MODELS
    reconstruction = model.pop("reconstruction", 0.5) if reconstructs else None
    words = model.get("vocabulary", 0)
    task = build_task(dataset, device, normalise, length, words, reconstruction)
    build = partial(
        build_model,
        image_shape=dataset.x.shape[1:],
        classes=len(dataset.classes),
        **model,
    )
    local = call(LocalSettings, "local training", config["training"])
    return Engine(build, task, federation, local, config["seed"], device, workers)


def begin(config: dict[str, Any], engine: Engine, grouping: Path | None = None) -> Run:
    """A run before its first round.

    Args:
        config: as the ledger states it, resolved.
        engine: trains and evaluates.
        grouping: folder of what the method averages by, where the run names one.
    Raises:
        InputError: if the method has no such settings, or averages by no grouping.
    """
    options = dict(config["method"])
    name = options.pop("name", "")
    method = load_method(name)
    given = _related(name, method, grouping) if grouping else {}
    settings = call(method.Settings, f"method {name}", options, **given)
    return Run(config, method, settings, engine, method.init(engine, settings))


def _related(name: str, method: ModuleType, grouping: Path) -> dict[str, np.ndarray]:
    if "relatedness" not in method.Settings.__dataclass_fields__:
        raise InputError(f"method {name} averages by no grouping; drop `grouping:` from the run")
    found = relatedness.load(grouping)
    return {"relatedness": found.related, "placed": found.placed, "later": found.later}


def step(run: Run) -> None:
    """One round, with the evaluation before it when it is due."""
    started = time.monotonic()
    if run.completed % run.config["evaluate_every"] == 0:
        run.rows += _scores(run)
    run.state, rows = run.method.round_(run.state, run.engine, run.settings, run.completed)
    run.rows += rows
    run.completed += 1
    _keep(run)
    run.seconds += time.monotonic() - started


def _keep(run: Run) -> None:
    """Put the models aside where the ledger wants to see how they grow."""
    every = run.config["keep_every"]
    if every and run.completed % every == 0:
        for leaf, model in zip(run.state.leaves, run.state.models, strict=True):
            run.state.cached[f"round{run.completed}.node{leaf}"] = model.clone()


def _scores(run: Run) -> list[Row]:
    """Test score of every client under its group's model after the completed rounds."""
    if hasattr(run.method, "before_scores"):
        run.method.before_scores(run.state, run.engine, run.settings, run.completed)
    clients = list(range(run.engine.federation.clients))
    values = evaluate(run.engine, run.state.models, clients, run.state.grouping[: len(clients)])
    metric, now = run.engine.task.metric, run.completed
    rows = [(now, "client", c, metric, float(v)) for c, v in zip(clients, values, strict=True)]
    return rows + _newcomer_scores(run)


def _newcomer_scores(run: Run) -> list[Row]:
    """Test score of every newcomer, where the method says whose model it gets before the end."""
    federation = run.engine.federation
    if not (run.settings.newcomers and federation.newcomers):
        return []
    groups = run.method.newcomer_groups(run.state, run.engine, run.settings)
    clients = list(range(federation.clients, len(federation.train)))
    values = evaluate(run.engine, run.state.models, clients, groups)
    metric = run.engine.task.metric
    return [
        (run.completed, "newcomer", client, metric, float(value))
        for client, value in zip(clients, values, strict=True)
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
    grouping: Path | None,
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
        grouping: folder of the grouping, where the run names one.
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
    run = begin(config, engine, grouping)
    machine = [str(place), engine.path, torch.__version__]
    given = ("relatedness", "placed", "later") if grouping else ()
    related = digest([getattr(run.settings, name).tolist() for name in given])
    identity = digest([config, code, dataset.digest, clients_digest, related, *machine])
    with checkpoint.sole_owner(saved):
        train(run, saved, identity, config["checkpoint_every"], tell)
        tell(f"{run.seconds:.0f} s, peak memory {peak_memory()} MB")
        write(run, dataset, clients_digest, code, out, workers)
        saved.unlink(missing_ok=True)


def _make_deterministic(device: torch.device) -> None:
    """Let PyTorch compute the same bits in every run, one thread per operation."""
    torch.set_num_threads(1)  # parallelism is over clients; threads inside an operation collapse
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = False  # costs a pass over every buffer
    if device.type == "cuda":  # what deterministic products need, before the first of them
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
