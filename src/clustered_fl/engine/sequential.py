"""The plain way: each client by itself, step by step, with PyTorch's automatic differentiation.

It trains every network with every setting, and the other ways are tested against it.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor, nn

from clustered_fl.engine.update import Update
from clustered_fl.engine.workers import Workers
from clustered_fl.engine.workload import Workload
from clustered_fl.models.dropout import begin_epoch, next_step

Descend = Callable[[np.ndarray, int], tuple[Tensor, int]]
"""Takes a step on rows of a client; returns the summed loss before it and its terms."""


class Sequential:
    """One client after the other on each thread.

    Args:
        workload: what is trained.
        workers: the threads.
    """

    def __init__(self, workload: Workload, workers: Workers) -> None:
        self.workload, self.workers = workload, workers

    @staticmethod
    def supports(workload: Workload) -> bool:
        """Always."""
        return True

    def train(self, start: Tensor, clients: Sequence[int], round_: int) -> tuple[Tensor, Tensor]:
        """Updates [n, P] and mean losses [n] of the last epoch, from start models [n, P]."""
        updates, losses = torch.empty_like(start), torch.empty(len(clients))

        def one(i: int) -> None:
            # A copy of its own, because the bits of a product may hang on where memory begins.
            model = start[i].clone()
            losses[i] = self._client(model, start[i], clients[i], round_)
            torch.sub(model, start[i], out=updates[i])

        self.workers.map(one, range(len(clients)))
        return updates, losses.to(start.device)

    def _client(self, model: Tensor, start: Tensor, client: int, round_: int) -> Tensor:
        """Train `model` [P] in place; returns the mean loss of the last epoch."""
        network, descend = self._begin(model, start)
        for epoch in range(self.workload.settings.epochs):
            total, terms = torch.zeros((), device=start.device), 0
            key = self.workload.dropout_key(client, round_, epoch)
            begin_epoch(network, torch.tensor(key, device=start.device))
            for rows in self.workload.batches(self.workload.order(client, round_, epoch)):
                loss, count = descend(rows, client)
                next_step(network)
                total, terms = total + loss, terms + count
        return total / terms

    def _begin(self, model: Tensor, start: Tensor) -> tuple[nn.Module, Descend]:
        """The network that holds `model`, and what makes a step on the mean loss over a batch."""
        worker, update = self.workers.own(), Update(self.workload.settings, start)
        network = worker.hold(model, training=True)

        def descend(rows: np.ndarray, client: int) -> tuple[Tensor, int]:
            worker.gradient.zero_()
            loss, terms = worker.backward(rows, client)
            update.step(model, worker.gradient.div_(terms))
            return loss, terms

        return network, descend
