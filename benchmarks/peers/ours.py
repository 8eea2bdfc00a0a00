"""The engine of clustered_fl, unchanged."""

import tomllib
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from clustered_fl.data.federation import Federation
from clustered_fl.engine.evaluation import evaluate
from clustered_fl.engine.task import ImageTask
from clustered_fl.engine.training import Engine as TrainingEngine
from clustered_fl.engine.training import LocalSettings
from clustered_fl.models import IMAGE_MODELS, build_model
from peers import Engine, Unavailable
from problem import ROUND, SEED, Problem

# The benchmark's networks by the names that clustered_fl has for them.
NAMES = {"mlp": "mlp", "lenet28": "le_net", "lenet32": "le_net", "leaf": "leaf_cnn"}


class FloatTask(ImageTask):
    """Images that are normalised already."""

    def inputs(self, rows: Tensor) -> Tensor:
        """The images themselves."""
        return self.x[rows]


def _version() -> str:
    project = Path(__file__).parents[2] / "pyproject.toml"
    return tomllib.loads(project.read_text())["project"]["version"]


def _task(problem: Problem) -> FloatTask:
    """All clients' samples in one pool, and the test images behind them."""
    images = torch.from_numpy(problem.inputs.reshape(-1, *problem.architecture.image))
    labels = torch.from_numpy(problem.labels.reshape(-1))
    if len(problem.test_labels):
        images = torch.cat([images, torch.from_numpy(problem.test_inputs)])
        labels = torch.cat([labels, torch.from_numpy(problem.test_labels)])
    return FloatTask(images, labels, 0.0, 1.0)


def _federation(problem: Problem) -> Federation:
    """Client c holds the c-th n rows of the pool; all share the test images behind them."""
    rows = np.arange(problem.labels.size).reshape(problem.labels.shape)
    tests = rows.size + np.arange(len(problem.test_labels))
    first = np.zeros(problem.clients, dtype=np.int64)
    maps = np.tile(np.arange(problem.architecture.classes), (problem.clients, 1))
    return Federation(tuple(rows), (tests,), first, maps, first)


class Ours(Engine):
    """The engine draws its own permutations, as it does for its users.

    `problem` drew the given ones by the same law; the gate would notice if they differed.

    Args:
        workers: threads, each training one client at a time.
    """

    name, version = "ours", _version()

    def __init__(self, problem: Problem, workers: int = 1) -> None:
        super().__init__(problem)
        name, architecture = NAMES[problem.model], problem.architecture
        if name not in IMAGE_MODELS:
            raise Unavailable(f"clustered_fl has no model {name} yet")
        self.engine = TrainingEngine(
            lambda: build_model(name, architecture.image, architecture.classes),
            _task(problem),
            _federation(problem),
            LocalSettings(epochs=1, batch_size=problem.batch_size, lr=problem.lr),
            SEED,
            torch.device("cpu"),
            workers,
        )
        self.start = torch.from_numpy(problem.start).expand(problem.clients, -1)

    def train(self) -> np.ndarray:
        """Train every client from the start parameters."""
        clients = range(self.problem.clients)
        updates = self.engine.train(self.start, clients, ROUND)[0]
        if len(self.problem.test_labels):
            self.accuracies = evaluate(self.engine, self.start + updates, clients, clients)
        return updates.numpy()
