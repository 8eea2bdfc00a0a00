"""Local training of many clients in one call.

Every client's parameters are one row of a matrix [clients, P]. There are several ways to train
them, which agree to rounding (tests/unit/test_engine.py); which is fastest depends on the network,
the batch and the machine, see `engine.calibration`. With each of them a client's update is the same
bits for any number of workers and in any company; `stacked` alone cannot promise it on a GPU.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn.utils import parameters_to_vector

from clustered_fl.data.federation import Federation
from clustered_fl.engine.compiled import Compiled
from clustered_fl.engine.in_place import InPlace
from clustered_fl.engine.sequential import Sequential
from clustered_fl.engine.stacked import Stacked
from clustered_fl.engine.task import Task
from clustered_fl.engine.workers import Workers
from clustered_fl.engine.workload import LocalSettings, Workload
from clustered_fl.errors import InputError
from clustered_fl.randomness import generator


class Path(Protocol):
    """One way to train clients."""

    def __init__(self, workload: Workload, workers: Workers) -> None: ...

    @staticmethod
    def supports(workload: Workload) -> bool:
        """Whether it can train this network with these settings on this device."""

    def train(
        self, start: Sequence[Tensor], clients: Sequence[int], round_: int
    ) -> tuple[Tensor, Tensor]:
        """Updates [n, P] and mean losses [n] of the last epoch, from n start models [P]."""


PATHS: dict[str, type[Path]] = {
    "compiled": Compiled,
    "in_place": InPlace,
    "sequential": Sequential,
    "stacked": Stacked,
}


class Engine:
    """Trains and probes the clients of one federation.

    Args:
        build: creates the network with random parameters.
        task: batches and losses of the data.
        federation: who holds what.
        settings: local training.
        seed: of the whole run.
        device: "cpu" or a CUDA device.
        workers: threads, each training one client at a time.
        path: key of `PATHS`.
    Raises:
        InputError: if there is no such path, or it cannot train this.
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
        path: str = "sequential",
    ) -> None:
        self.task, self.federation, self.settings = task, federation, settings
        self.seed, self.device = seed, device
        self.workload = Workload(build, task, federation, settings, seed, device)
        self.workers = Workers(self.workload, workers)
        self.use(path)

    def use(self, path: str) -> None:
        """Train in the way called `path` from now on."""
        allowed = supported(self.workload)
        if path not in allowed:
            raise InputError(f"path {path!r} cannot train this run; it allows {', '.join(allowed)}")
        self.path, self._path = path, PATHS[path](self.workload, self.workers)

    def initial_model(self, number: int = 0) -> Tensor:
        """Flat random parameters [P]; they depend on the seed and on which model it is only."""
        numbers = (number,) if number else ()
        draw = int(generator(self.seed, "initial model", *numbers).integers(2**31))
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(draw)
            built = self.workload.build()
        return parameters_to_vector(built.parameters()).detach().to(self.device)

    def train(
        self, start: Sequence[Tensor], clients: Sequence[int], round_: int
    ) -> tuple[Tensor, Tensor]:
        """Train each client from its start model [P]; clients may share one, which is not copied.

        Returns:
            Weight updates [n, P] and the mean training loss of each client's last epoch [n].
        Raises:
            InputError: if a client's parameters are no longer finite, naming client and round.
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

    def gradients(self, models: Sequence[Tensor], clients: Sequence[int]) -> Tensor:
        """Full gradient of each client's risk at its model [P]: [n, P] (CFL eq. 46)."""
        rows = range(len(clients))
        return torch.stack(self.workers.map(lambda i: self._gradient(models[i], clients[i]), rows))

    def _gradient(self, model: Tensor, client: int) -> Tensor:
        worker, terms = self.workers.own(), 0
        worker.load(model)
        worker.gradient.zero_()
        for rows in self.workload.batches(self.federation.train[client]):
            terms += worker.backward(rows, client)[1]
        return worker.gradient / terms


def supported(workload: Workload) -> list[str]:
    """The paths that can train a workload."""
    return [name for name, path in PATHS.items() if path.supports(workload)]
