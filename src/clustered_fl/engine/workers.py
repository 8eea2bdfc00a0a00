"""Threads, each with one network that takes on one client's model after the other.

The network stays, and its parameters are views into one vector, so that a step of SGD is one
operation and no memory is asked for between clients (the idea of pfl-research's resident model).
Clients are shared out over threads, an operation never
is: torch's own threads would cost a barrier per operation, and change the bits.
"""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils import vector_to_parameters

from clustered_fl.engine.workload import Workload


class Worker:
    """One network whose parameters and gradients are views into flat vectors.

    Attributes:
        network: in evaluation mode unless `load` says otherwise.
        model, gradient: [P]. They never move, for bits may hang on where memory begins.
    """

    def __init__(self, workload: Workload) -> None:
        self.workload, device = workload, workload.device
        self.network = workload.build().to(device)
        size = sum(p.numel() for p in self.network.parameters())
        self.model, self.gradient = (torch.zeros(size, device=device) for _ in range(2))
        vector_to_parameters(self.model, self.network.parameters())
        start = 0
        for parameter in self.network.parameters():
            end = start + parameter.numel()
            parameter.grad = self.gradient[start:end].view_as(parameter)
            start = end
        if workload.settings.layers == "last":
            for parameter in list(self.network.parameters())[:-2]:  # all but a weight and a bias
                parameter.requires_grad_(False)

    def load(self, model: Tensor, training: bool = False) -> nn.Module:
        """Take on the parameters `model` [P]."""
        self.model.copy_(model)
        return self.network.train(training)

    def backward(self, rows: np.ndarray, client: int) -> tuple[Tensor, int]:
        """Add the gradient of the loss over `rows` to the worker's; returns loss and terms."""
        workload = self.workload
        targets = workload.targets(rows, client)
        loss = workload.task.loss(self.network(workload.inputs(rows)), targets)
        loss.backward()
        return loss.detach(), workload.task.terms(targets)


class Workers:
    """The threads of one engine.

    Args:
        workload: whose network each thread gets.
        number: of threads.
    """

    def __init__(self, workload: Workload, number: int) -> None:
        self.workload = workload
        self._local = threading.local()
        self._pool = ThreadPoolExecutor(number)

    def map(self, function: Callable, items: Sequence) -> list:
        """Apply `function` to every item on the threads, results in order."""
        return list(self._pool.map(function, items))

    def own(self, kind: type = Worker) -> Worker:
        """The calling thread's worker of a kind, made on first use."""
        if not hasattr(self._local, kind.__name__):
            with torch.random.fork_rng(devices=[]):
                setattr(self._local, kind.__name__, kind(self.workload))
        return getattr(self._local, kind.__name__)
