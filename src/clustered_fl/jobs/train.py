"""One run: a federation, a model, local training, a method and a seed give one record."""

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
from clustered_fl.engine.workload import LocalSettings, Workload
from clustered_fl.errors import InputError, InterruptionError
from clustered_fl.files import digest
from clustered_fl.jobs.device import prepared
from clustered_fl.jobs.record import Config, Run, write
from clustered_fl.methods import OF_A_GROUPING, load_method
from clustered_fl.methods.state import State
from clustered_fl.models import build_model
from clustered_fl.models.fit import require_fit
from clustered_fl.models.inputs import separated
from clustered_fl.options import call
from clustered_fl.records import relatedness
from clustered_fl.records.machine import peak_memory
from clustered_fl.records.measurements import Measurements, Row
from clustered_fl.records.reading import Origin
from clustered_fl.records.relatedness import Relatedness, require_clients

PROGRESS_SECONDS = 10
ROWS = "rows"
"""The measurements in a checkpoint, besides the tensors of the state."""


def build_engine(
    config: Config, dataset: Dataset, federation: Federation, device: torch.device, workers: int
) -> Engine:
    """The engine of a run; InputError if its model does not fit, or a setting is not allowed."""
    inputs, network = separated(config["model"])
    task = build_task(dataset, device, inputs, network.get("vocabulary", 0))
    about = network.pop("name"), dataset.x.shape[1:], len(dataset.classes)
    require_fit(*about, **network)
    build = partial(build_model, *about, **network)
    local = call(LocalSettings, "local training", config["training"])
    return Engine(Workload(build, task, federation, local, config["seed"], device), workers)


def begin(config: Config, engine: Engine, grouping: Relatedness | None = None) -> Run:
    """A run before its first round; its method uses the grouping, if there is one.

    Raises: InputError if a setting is unknown, the method does not use groupings, or the grouping
        is of other clients.
    """
    options = dict(config["method"])
    method = load_method(name := options.pop("name", ""))
    takes = OF_A_GROUPING[0] in method.Settings.__dataclass_fields__
    if grouping and not takes:
        raise InputError(f"method {name} averages by no grouping; drop `grouping:` from the run")
    given = dict.fromkeys(OF_A_GROUPING) if takes else {}
    if grouping:
        federation = engine.federation
        asked = federation.newcomers if options.get("newcomers") else 0
        require_clients(grouping, federation.clients, asked)
        found = grouping.related, grouping.placed, grouping.later
        given = dict(zip(OF_A_GROUPING, found, strict=True))
    settings = call(method.Settings, f"method {name}", options, **given)
    return Run(config, method, settings, engine, method.init(engine, settings))


def step(run: Run) -> None:
    """One round, preceded by an evaluation if one is due."""
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
    """Test scores of all clients, and of newcomers if the method has `newcomer_groups`."""
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
    """Complete a run and test at its end; yields the number of completed rounds after each."""
    while run.completed < run.config["rounds"] and not run.state.finished:
        step(run)
        yield run.completed
    run.rows += _scores(run)


def train(
    run: Run, saved: Path, identity: str, tell: Callable[[str], None], interrupted: list[int]
) -> None:
    """Complete a run, starting from the checkpoint in `saved` if it has this identity.

    A checkpoint is saved every few minutes, at the end, and after a signal (`interrupted` is not
    empty). Progress is reported every ten seconds.

    Raises: InterruptionError after a signal, once the checkpoint is saved.
    """
    _resume(run, saved, identity, tell)
    total, first, began, told = run.config["rounds"], run.completed, time.monotonic(), 0.0
    kept, pause = time.monotonic(), checkpoint.SAVE_SECONDS
    for completed in rounds(run):
        ended, now = completed == total or run.state.finished, time.monotonic()
        if ended or interrupted or now - kept >= pause:
            _save(run, saved, identity)
            kept = time.monotonic()
            pause = checkpoint.pause_after(kept - now)
        if interrupted and not ended:
            raise InterruptionError(interrupted[0])
        if time.monotonic() - told > PROGRESS_SECONDS or ended:
            tell(_progress(run, (completed - first) / (time.monotonic() - began)))
            told = time.monotonic()


def _progress(run: Run, rate: float) -> str:
    metric, total = run.engine.task.metric, run.config["rounds"]
    last = run.rows.last(metric)
    score = f"{metric} {np.mean(last):.4g}" if len(last) else f"{metric} not yet measured"
    left = (total - run.completed) / rate / 60
    return (
        f"round {run.completed}/{total}  {rate:.2f} rounds/s  {score}  "
        f"{len(run.state.models)} group(s)  {left:.1f} min left  {peak_memory()} MB"
    )


def _save(run: Run, saved: Path, identity: str) -> None:
    tensors, state = run.state.pack()
    tensors |= {ROWS: torch.from_numpy(run.rows.packed())}
    content = {"state": state, "completed": run.completed}
    spent = {"seconds": run.seconds, "cpu_seconds": run.cpu_seconds}
    checkpoint.save(saved, identity, tensors, content | spent)


def _resume(run: Run, saved: Path, identity: str, tell: Callable[[str], None]) -> None:
    if (found := checkpoint.load(saved, identity, tell)) is None:
        return
    tensors, content = found
    run.rows = Measurements.unpacked(tensors.pop(ROWS).numpy())
    tensors = {name: tensor.to(run.engine.device) for name, tensor in tensors.items()}
    run.state = State.unpack(tensors, content["state"])
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
        saved: checkpoint file, deleted when the record is complete.
        grouping: folder of the grouping, if the run names one.
        path: implementation of local training, key of `engine.training.PATHS`, or "auto".
    """
    place = prepared(device, tell)
    dataset = datasets.load(data, config.get("dataset"))
    made_by = [config.get("federation"), config["seed"]]
    clients, clients_digest = federations.load(federation, dataset.digest, made_by)
    engine = build_engine(config, dataset, clients, place, workers)
    engine.use(path)
    run = begin(config, engine, relatedness.load(grouping, False) if grouping else None)
    machine = [str(place), engine.path, torch.__version__]
    given = OF_A_GROUPING if grouping else ()
    related = digest([getattr(run.settings, name).tolist() for name in given])
    identity = digest([config, origin.code, dataset.digest, clients_digest, related, *machine])
    with checkpoint.sole_owner(saved), checkpoint.interruptible() as interrupted:
        train(run, saved, identity, tell, interrupted)
        tell(f"{run.seconds:.0f} s, peak memory {peak_memory()} MB")
        write(run, dataset, clients_digest, origin, out, workers)
        saved.unlink(missing_ok=True)
