"""Local training of many clients in one call.

Every client's parameters are one row of a matrix [clients, P]. A worker holds one copy of the
network whose parameters are views into the row it works on, so that a step of SGD is one operation
on one vector and nothing is copied between clients (the idea of pfl-research's resident model).
Clients are shared out over threads, an operation never is: a client's update is the same bits for
any number of workers and in any company (tests/unit/test_engine.py).
"""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Tensor, nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from clustered_fl.data.federation import Federation
from clustered_fl.engine.task import Task
from clustered_fl.errors import InputError
from clustered_fl.options import STRICT
from clustered_fl.randomness import generator


@dataclass(frozen=True, config=STRICT)
class LocalSettings:
    """Local training as the ledger states it.

    Attributes:
        epochs: passes over the client's data per round.
        batch_size: a client with fewer samples uses all of them as one batch.
        lr: learning rate of SGD.
        momentum: of a buffer that starts empty in every round.
        proximal: mu of FedProx, the pull mu/2 |theta - start|^2 towards the start model.
        clip: largest norm of a gradient, None for no limit.
    """

    epochs: int = Field(ge=1)
    batch_size: int = Field(ge=1)
    lr: float = Field(gt=0)
    momentum: float = Field(default=0.0, ge=0, lt=1)
    proximal: float = Field(default=0.0, ge=0)
    clip: float | None = Field(default=None, gt=0)


class _Worker:
    """One network whose parameters and gradients are views into flat vectors."""

    def __init__(self, network: nn.Module, device: torch.device) -> None:
        self.network = network.to(device)
        size = sum(p.numel() for p in self.network.parameters())
        self.gradient = torch.zeros(size, device=device)
        vector_to_parameters(torch.zeros(size, device=device), self.network.parameters())
        start = 0
        for parameter in self.network.parameters():
            end = start + parameter.numel()
            parameter.grad = self.gradient[start:end].view_as(parameter)
            start = end

    def hold(self, model: Tensor) -> nn.Module:
        """Let the network's parameters be views into `model` [P]."""
        vector_to_parameters(model, self.network.parameters())
        return self.network


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
    ) -> None:
        self.task, self.federation, self.settings = task, federation, settings
        self.seed, self.device = seed, device
        self.label_maps = torch.from_numpy(federation.label_maps).to(device)
        self._build = build
        self._local = threading.local()
        self._pool = ThreadPoolExecutor(workers)

    def initial_model(self) -> Tensor:
        """Flat random parameters [P]; they depend on the seed only."""
        draw = int(generator(self.seed, "initial model").integers(2**31))
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(draw)
            return parameters_to_vector(self._build().parameters()).detach().to(self.device)

    def train(self, start: Tensor, clients: Sequence[int], round_: int) -> tuple[Tensor, Tensor]:
        """Train each client from its row of `start` [n, P].

        Returns:
            Weight updates [n, P] and the mean training loss of each client's last epoch [n].
        Raises:
            InputError: if a client's parameters are no longer finite, naming client and round.
        """
        done = self.map(lambda i: self._train(start[i], clients[i], round_), range(len(clients)))
        updates, losses = zip(*done, strict=True)
        stacked = torch.stack(updates)
        broken = ~torch.isfinite(stacked.sum(1))
        if broken.any():
            client = clients[int(broken.nonzero()[0])]
            raise InputError(
                f"client {client} has non-finite parameters after round {round_}; "
                f"a learning rate below {self.settings.lr} or a gradient clip may help"
            )
        return stacked, torch.stack(losses)

    def gradients(self, models: Tensor, clients: Sequence[int]) -> Tensor:
        """Full gradient of each client's risk at its row of `models`: [n, P] (CFL eq. 46)."""
        rows = range(len(clients))
        return torch.stack(self.map(lambda i: self._gradient(models[i], clients[i]), rows))

    def inputs(self, rows: np.ndarray) -> Tensor:
        """What the network sees of pooled `rows`."""
        return self.task.inputs(torch.from_numpy(rows).to(self.device))

    def targets(self, rows: np.ndarray, client: int) -> Tensor:
        """What `client` wants the network to answer for pooled `rows`."""
        return self.task.targets(torch.from_numpy(rows).to(self.device), self.label_maps[client])

    def map(self, function: Callable, items: Sequence) -> list:
        """Apply `function` to every item on the engine's threads, results in order."""
        return list(self._pool.map(function, items))

    def worker(self) -> _Worker:
        """The calling thread's network, made on first use."""
        if not hasattr(self._local, "worker"):
            with torch.random.fork_rng(devices=[]):
                self._local.worker = _Worker(self._build(), self.device)
        return self._local.worker

    def _backward(self, worker: _Worker, rows: np.ndarray, client: int) -> tuple[Tensor, int]:
        """Add the gradient of the loss over `rows` to the worker's; returns loss and terms."""
        targets = self.targets(rows, client)
        loss = self.task.loss(worker.network(self.inputs(rows)), targets)
        loss.backward()
        return loss.detach(), self.task.terms(targets)

    def _gradient(self, model: Tensor, client: int) -> Tensor:
        worker, terms = self.worker(), 0
        worker.hold(model.clone())
        worker.gradient.zero_()
        for rows in self._batches(self.federation.train[client]):
            terms += self._backward(worker, rows, client)[1]
        return worker.gradient / terms

    def _train(self, start: Tensor, client: int, round_: int) -> tuple[Tensor, Tensor]:
        model, velocity, worker = start.clone(), None, self.worker()
        worker.hold(model)
        for epoch in range(self.settings.epochs):
            rng = generator(self.seed, "batches", client, round_, epoch)
            total, terms = torch.zeros((), device=self.device), 0
            for rows in self._batches(rng.permutation(self.federation.train[client])):
                worker.gradient.zero_()
                loss, count = self._backward(worker, rows, client)
                velocity = self._step(model, worker.gradient.div_(count), start, velocity)
                total, terms = total + loss, terms + count
        return model - start, total / terms

    def _batches(self, rows: np.ndarray) -> list[np.ndarray]:
        size = self.settings.batch_size
        return [rows[first : first + size] for first in range(0, len(rows), size)]

    def _step(
        self, model: Tensor, gradient: Tensor, start: Tensor, velocity: Tensor | None
    ) -> Tensor | None:
        """One step of SGD on `model` in place; returns the momentum buffer."""
        settings = self.settings
        if settings.proximal:
            gradient.add_(model - start, alpha=settings.proximal)
        if settings.clip is not None:
            gradient.mul_((settings.clip / (gradient.norm() + 1e-12)).clamp(max=1.0))
        if settings.momentum:
            velocity = (
                gradient.clone()
                if velocity is None
                else velocity.mul_(settings.momentum).add_(gradient)
            )
        model.add_(velocity if settings.momentum else gradient, alpha=-settings.lr)
        return velocity
