"""The plain way: each client by itself, step by step, with PyTorch's automatic differentiation.

It trains every network with every setting, and the other ways are tested against it.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor, nn

from clustered_fl.engine.update import Update
from clustered_fl.engine.workers import Worker, Workers
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

    def train(
        self, start: Sequence[Tensor], clients: Sequence[int], round_: int
    ) -> tuple[Tensor, Tensor]:
        """Updates [n, P] and mean losses [n] of the last epoch, from n start models [P]."""
        updates = start[0].new_empty(len(clients), len(start[0]))
        losses = torch.empty(len(clients))

        def one(i: int) -> None:
            worker, descend = self._begin(start[i])
            losses[i] = self._client(worker.network, descend, clients[i], round_)
            torch.sub(worker.model, start[i], out=updates[i])

        self.workers.map(one, range(len(clients)))
        return updates, losses.to(updates.device)

    def _client(self, network: nn.Module, descend: Descend, client: int, round_: int) -> Tensor:
        """Make the steps of one client; returns the mean loss of the last epoch."""
        for epoch in range(self.workload.settings.epochs):
            total, terms = torch.zeros((), device=self.workload.device), 0
            key = self.workload.dropout_key(client, round_, epoch)
            begin_epoch(network, torch.tensor(key, device=self.workload.device))
            for rows in self.workload.batches(self.workload.order(client, round_, epoch)):
                loss, count = descend(rows, client)
                next_step(network)
                total, terms = total + loss, terms + count
        return total / terms

    def _begin(self, start: Tensor) -> tuple[Worker, Descend]:
        """A worker at the start model, and what makes a step on the mean loss over a batch."""
        worker, update = self.workers.own(), Update(self.workload.settings, start)
        worker.load(start, training=True)

        def descend(rows: np.ndarray, client: int) -> tuple[Tensor, int]:
            worker.gradient.zero_()
            loss, terms = worker.backward(rows, client)
            update.step(worker.model, worker.gradient.div_(terms))
            return loss, terms

        return worker, descend
