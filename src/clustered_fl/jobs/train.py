"""One run: a federation, a model, local training, a method and a seed; it leaves one record."""

import os
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import torch

from clustered_fl.data import dataset as datasets
from clustered_fl.data import federation as federations
from clustered_fl.data.dataset import Dataset
from clustered_fl.data.federation import Federation
from clustered_fl.engine import checkpoint
from clustered_fl.engine.evaluation import evaluate
from clustered_fl.engine.task import build_task
from clustered_fl.engine.training import Engine
from clustered_fl.engine.workload import LocalSettings
from clustered_fl.errors import InputError
from clustered_fl.files import digest
from clustered_fl.jobs.record import Config, Run, write
from clustered_fl.methods import load_method
from clustered_fl.methods.state import Row, State
from clustered_fl.models import build_model
from clustered_fl.models.inputs import separated
from clustered_fl.options import call
from clustered_fl.records import relatedness
from clustered_fl.records.machine import peak_memory
from clustered_fl.records.reading import Origin
from clustered_fl.records.relatedness import Relatedness

PROGRESS_SECONDS = 10


def choose_device(name: str) -> torch.device:
    """The device "cpu", "cuda" (InputError if absent) or "auto" (CUDA where there is one)."""
    if name == "cuda" and not torch.cuda.is_available():
        raise InputError("device cuda asked for but no CUDA GPU is visible; use device=cpu or auto")
    cuda = name == "cuda" or (name == "auto" and torch.cuda.is_available())
    return torch.device("cuda" if cuda else "cpu")


def build_engine(
    config: Config, dataset: Dataset, federation: Federation, device: torch.device, workers: int
) -> Engine:
    """The engine of a run; an InputError if its model or its local training cannot be built."""
    inputs, network = separated(config["model"])
    task = build_task(dataset, device, inputs, network.get("vocabulary", 0))
    shape, classes = dataset.x.shape[1:], len(dataset.classes)
    build = partial(build_model, image_shape=shape, classes=classes, **network)
    local = call(LocalSettings, "local training", config["training"])
    return Engine(build, task, federation, local, config["seed"], device, workers)


def begin(config: Config, engine: Engine, grouping: Relatedness | None = None) -> Run:
    """A run before its first round; its method averages by the grouping, where there is one.

    Raises: InputError if the method has no such settings, or averages by no grouping.
    """
    options, given = dict(config["method"]), {}
    method = load_method(name := options.pop("name", ""))
    if grouping and "relatedness" not in method.Settings.__dataclass_fields__:
        raise InputError(f"method {name} averages by no grouping; drop `grouping:` from the run")
    if grouping:
        given = {"placed": grouping.placed, "later": grouping.later}
        given["relatedness"] = grouping.related
    settings = call(method.Settings, f"method {name}", options, **given)
    return Run(config, method, settings, engine, method.init(engine, settings))


def step(run: Run) -> None:
    """One round, with the evaluation before it when it is due."""
    started, keep_every = time.monotonic(), run.config["keep_every"]
    began = time.process_time()
    if run.completed % run.config["evaluate_every"] == 0:
        run.rows += _scores(run)
    run.state, rows = run.method.round_(run.state, run.engine, run.settings, run.completed)
    run.rows += rows
    run.completed += 1
    if keep_every and run.completed % keep_every == 0:
        for leaf, model in zip(run.state.leaves, run.state.models, strict=True):
            run.state.cached[f"round{run.completed}.node{leaf}"] = model.clone()
    run.seconds += time.monotonic() - started
    run.cpu_seconds += time.process_time() - began


def _scores(run: Run) -> list[Row]:
    """Test score of every client, and of newcomers where the method has `newcomer_groups`."""
    if hasattr(run.method, "before_scores"):
        run.method.before_scores(run.state, run.engine, run.settings, run.completed)
    federation, metric = run.engine.federation, run.engine.task.metric
    count, every = federation.clients, range(len(federation.train))
    tested = [("client", every[:count], run.state.grouping[:count])]
    if run.settings.newcomers and federation.newcomers:
        groups = run.method.newcomer_groups(run.state, run.engine, run.settings)
        tested.append(("newcomer", every[count:], groups))
    rows = []
    for scope, clients, groups in tested:
        values = evaluate(run.engine, run.state.models, clients, groups).tolist()
        pairs = zip(clients, values, strict=True)
        rows += [(run.completed, scope, client, metric, value) for client, value in pairs]
    return rows


def rounds(run: Run) -> Iterator[int]:
    """Carry a run to its end, with the tests after it; gives the completed rounds after each."""
    while run.completed < run.config["rounds"] and not run.state.finished:
        step(run)
        yield run.completed
    run.rows += _scores(run)


def train(run: Run, saved: Path, identity: str, every: int, tell: Callable[[str], None]) -> None:
    """Carry a run to its end, from its checkpoint in `saved` where there is one of this identity.

    A checkpoint is saved `every` so many rounds, and progress is told every ten seconds.
    """
    _resume(run, saved, identity, tell)
    total, first, began, told = run.config["rounds"], run.completed, time.monotonic(), 0.0
    for completed in rounds(run):
        if time.monotonic() - told > PROGRESS_SECONDS or completed == total:
            tell(_progress(run, (completed - first) / (time.monotonic() - began)))
            told = time.monotonic()
        if completed % every == 0:
            tensors, state = run.state.pack()
            content = {"state": state, "rows": run.rows, "completed": completed}
            spent = {"seconds": run.seconds, "cpu_seconds": run.cpu_seconds}
            checkpoint.save(saved, identity, tensors, content | spent)


def _progress(run: Run, rate: float) -> str:
    metric, total = run.engine.task.metric, run.config["rounds"]
    last = [row[4] for row in run.rows if row[3] == metric][-run.engine.federation.clients :]
    score = f"{metric} {np.mean(last):.4g}" if last else f"{metric} not yet measured"
    left = (total - run.completed) / rate / 60
    return (
        f"round {run.completed}/{total}  {rate:.2f} rounds/s  {score}  "
        f"{len(run.state.models)} group(s)  {left:.1f} min left"
    )


def _resume(run: Run, saved: Path, identity: str, tell: Callable[[str], None]) -> None:
    if (found := checkpoint.load(saved, identity)) is None:
        return
    tensors, content = found
    tensors = {name: tensor.to(run.engine.device) for name, tensor in tensors.items()}
    run.state = State.unpack(tensors, content["state"])
    run.rows = [tuple(row) for row in content["rows"]]
    run.completed, run.seconds = content["completed"], content["seconds"]
    run.cpu_seconds = content["cpu_seconds"]
    tell(f"continuing after round {run.completed}")


def execute(
    config: Config,
    data: Path,
    federation: Path,
    out: Path,
    saved: Path,
    grouping: Path | None,
    origin: Origin,
    device: str,
    path: str,
    workers: int,
    tell: Callable[[str], None],
) -> None:
    """Compute a run and write its record to `out`.

    Args:
        saved: checkpoint file, deleted when the record is whole.
        grouping: folder of the grouping, where the run names one.
        path: how clients are trained, key of `PATHS`, or "auto".
    """
    place = choose_device(device)
    make_deterministic(place)
    dataset, (clients, clients_digest) = datasets.load(data), federations.load(federation)
    engine = build_engine(config, dataset, clients, place, workers)
    engine.use(path)
    run = begin(config, engine, relatedness.load(grouping, False) if grouping else None)
    machine = [str(place), engine.path, torch.__version__]
    given = ("relatedness", "placed", "later") if grouping else ()
    related = digest([getattr(run.settings, name).tolist() for name in given])
    identity = digest([config, origin.code, dataset.digest, clients_digest, related, *machine])
    with checkpoint.sole_owner(saved):
        train(run, saved, identity, config["checkpoint_every"], tell)
        tell(f"{run.seconds:.0f} s, peak memory {peak_memory()} MB")
        write(run, dataset, clients_digest, origin, out, workers)
        saved.unlink(missing_ok=True)


def make_deterministic(device: torch.device) -> None:
    """Let PyTorch compute the same bits in every run, one thread per operation."""
    torch.set_num_threads(1)  # parallelism is over clients; threads inside an operation collapse
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = False  # costs a pass over every buffer
    if device.type == "cuda":  # what deterministic products need, before the first of them
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
