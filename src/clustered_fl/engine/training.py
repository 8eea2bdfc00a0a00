"""Local training of many clients in one call.

Every client's parameters are one row of a matrix [clients, P]. The ways to train them agree to
rounding (tests/unit/test_engine.py). A client's update is the same bits for any number of workers
and whatever clients are trained beside it; `stacked` alone cannot promise it on a GPU.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils import parameters_to_vector

from clustered_fl.data.federation import Federation
from clustered_fl.engine.compiled import Compiled
from clustered_fl.engine.sequential import Sequential
from clustered_fl.engine.stacked import Stacked
from clustered_fl.engine.task import Task
from clustered_fl.engine.workers import Workers
from clustered_fl.engine.workload import LocalSettings, Trained, Workload
from clustered_fl.errors import InputError
from clustered_fl.randomness import generator

PATHS = {"compiled": Compiled, "sequential": Sequential, "stacked": Stacked}
"""The ways to train by name; see `chosen`."""
TOGETHER = 200
"""Rows of a full gradient that are differentiated at once, whatever the batch size of training."""


class Engine:
    """Trains and probes the clients of one federation.

    Args:
        build, task, federation, settings, seed, device: see `Workload`.
        workers: threads, each training one client at a time.
        path: key of `PATHS`, or "auto", see `chosen`.
    Raises: InputError if there is no such path, or it cannot train this.
    """

    def __init__(
        self,
        build: Callable[[], nn.Module],
        task: Task,
        federation: Federation,
        settings: LocalSettings,
        seed: int,
        device: torch.device,
        workers: int = 1,
        path: str = "auto",
    ) -> None:
        self.task, self.federation, self.settings = task, federation, settings
        self.seed, self.device = seed, device
        self.workload = Workload(build, task, federation, settings, seed, device)
        self.workers = Workers(self.workload, workers)
        self.use(path)

    def use(self, path: str) -> None:
        """Train in the way called `path` from now on, or in the chosen one with "auto"."""
        allowed = supported(self.workload)
        path = chosen(self.workload) if path == "auto" else path
        if path not in allowed:
            raise InputError(f"path {path!r} cannot train this run; it allows {', '.join(allowed)}")
        self.path, self._path = path, PATHS[path](self.workload, self.workers)

    def initial_model(self, number: int = 0) -> Tensor:
        """Flat random parameters [P]; they depend on the seed and on which model it is only."""
        rng = generator(self.seed, "initial model", *([number] if number else []))
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(rng.integers(2**31)))
            built = self.workload.build()
        return parameters_to_vector(built.parameters()).detach().to(self.device)

    def train(self, start: Sequence[Tensor], clients: Sequence[int], round_: int) -> Trained:
        """Train each client from its start model [P]; clients may share one, which is not copied.

        Raises: InputError if a client's parameters are no longer finite, naming client and round.
        """
        updates, losses = self._path.train(start, clients, round_)
        broken = ~torch.isfinite(updates.sum(1))
        if broken.any():
            client = clients[int(broken.nonzero()[0])]
            raise InputError(
                f"client {client} has non-finite parameters after round {round_}; "
                f"a learning rate below {self.settings.lr} or a gradient clip may help"
            )
        return updates, losses

    def scorer(self, model: Tensor) -> Callable[[np.ndarray], Tensor]:
        """What gives the network's answers to rows under a model [P]; for one thread of `workers`.

        The next call on the same thread takes its place.
        """
        return self._path.scorer(model)

    def gradients(self, models: Sequence[Tensor], clients: Sequence[int]) -> Tensor:
        """Full gradient of each client's risk at its model [P]: [n, P] (CFL eq. 46)."""

        def one(model: Tensor, client: int) -> Tensor:
            worker, terms = self.workers.own(), 0
            worker.load(model)
            worker.gradient.zero_()
            rows = self.federation.train[client]
            for first in range(0, len(rows), TOGETHER):
                terms += worker.backward(rows[first : first + TOGETHER], client)[1]
            return worker.gradient / terms

        return torch.stack(self.workers.map(one, models, clients))


def chosen(workload: Workload) -> str:
    """The path for a workload: on a GPU `stacked`, on a CPU `compiled`, where they can train it.

    `sequential` trains the rest. Nothing is measured, so that a run has the same path everywhere.
    """
    wanted = "compiled" if workload.device.type == "cpu" else "stacked"
    return wanted if PATHS[wanted].supports(workload) else "sequential"


def supported(workload: Workload) -> list[str]:
    """The paths that can train a workload."""
    return [name for name, path in PATHS.items() if path.supports(workload)]
