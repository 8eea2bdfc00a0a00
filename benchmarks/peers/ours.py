"""The engine of clustered_fl, unchanged."""

import tomllib
from pathlib import Path

import numpy as np
import torch

from clustered_fl.data.federation import Federation
from clustered_fl.engine.evaluation import evaluate
from clustered_fl.engine.task import ImageTask
from clustered_fl.engine.training import Engine as TrainingEngine
from clustered_fl.engine.workload import LocalSettings, Workload
from clustered_fl.models import build_model
from peers import Engine
from problem import DEVIATION, MEAN, ROUND, SEED, Problem

# The benchmark's networks by the names that clustered_fl has for them.
NAMES = {"mlp": "mlp", "lenet28": "le_net", "lenet32": "le_net", "leaf": "leaf_cnn"}


def _version() -> str:
    project = Path(__file__).parents[2] / "pyproject.toml"
    return tomllib.loads(project.read_text())["project"]["version"]


def _task(problem: Problem) -> ImageTask:
    """All clients' samples in one pool, and the test images behind them."""
    clients = problem.pixels.reshape(-1, *problem.architecture.image)
    pixels = np.concatenate([clients, problem.test_pixels])
    labels = np.concatenate([problem.labels.reshape(-1), problem.test_labels])
    normalise = float(MEAN), float(DEVIATION)
    return ImageTask(torch.from_numpy(pixels), torch.from_numpy(labels), *normalise)


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
        path: key of `clustered_fl.engine.training.PATHS`, or "auto".
    """

    name, version = "ours", _version()

    def __init__(self, problem: Problem, path: str = "auto", workers: int = 1) -> None:
        super().__init__(problem)
        name, architecture = NAMES[problem.model], problem.architecture
        workload = Workload(
            lambda: build_model(name, architecture.image, architecture.classes),
            _task(problem),
            _federation(problem),
            LocalSettings(epochs=1, batch_size=problem.batch_size, lr=problem.lr),
            SEED,
            torch.device("cpu"),
        )
        self.engine = TrainingEngine(workload, workers, path)
        self.version = f"{self.version}, {self.engine.path}"
        self.start = torch.from_numpy(problem.start).expand(problem.clients, -1)

    def train(self) -> np.ndarray:
        """Train every client from the start parameters."""
        clients = range(self.problem.clients)
        updates = self.engine.train(self.start, clients, ROUND)[0]
        if len(self.problem.test_labels):
            self.accuracies = evaluate(self.engine, self.start + updates, clients, clients)
        return updates.numpy()
