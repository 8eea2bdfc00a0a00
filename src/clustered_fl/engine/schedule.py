"""Who trains on what in which step, for clients that train at once.

Clients differ in their number of samples. A batch that a client cannot fill is filled up with -1,
which stands for no sample, so that no sample counts twice; a client without samples left is idle.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from clustered_fl.engine.workload import Workload


class Schedule(NamedTuple):
    """Who trains on what in which step.

    Attributes:
        rows: int64 [steps, K, B] pooled rows, -1 where a batch has no sample.
        keys: int64 [steps, K] of the dropout masks.
        numbers: int64 [steps, K] batches of the epoch before this one.
        last: bool [steps, K], whether the loss counts, because the epoch is the last one.
    """

    rows: Tensor
    keys: Tensor
    numbers: Tensor
    last: Tensor

    @classmethod
    def idle(cls, steps: int, clients: int, batch: int) -> "Schedule":
        """Nobody trains."""
        marks = torch.zeros(steps, clients, dtype=torch.int64)
        rows = torch.full((steps, clients, batch), -1)
        return cls(rows, marks, marks.clone(), marks.bool())

    def to(self, device: torch.device) -> "Schedule":
        """The same on a device."""
        return Schedule(*(part.to(device) for part in self))


def build_schedule(
    workload: Workload, clients: Sequence[int], round_: int, shape: tuple[int, int, int]
) -> Schedule:
    """All epochs of a round.

    Args:
        shape: steps of a block, of which the steps are a multiple; K, at least the number of
            clients, the others being idle; and B.
    """
    block, stacked, batch = shape
    epochs = workload.settings.epochs
    sizes = [len(workload.federation.train[client]) for client in clients]
    blocks = -(-epochs * -(-max(sizes) // batch) // block)
    schedule = Schedule.idle(blocks * block, stacked, batch)
    for k, client in enumerate(clients):
        first = 0
        for epoch in range(epochs):
            rows = _batches(workload.order(client, round_, epoch), batch)
            steps = slice(first, first + len(rows))
            schedule.rows[steps, k] = rows
            schedule.keys[steps, k] = workload.dropout_key(client, round_, epoch)
            schedule.numbers[steps, k] = torch.arange(len(rows))
            schedule.last[steps, k] = epoch == epochs - 1
            first = steps.stop
    return schedule


def _batches(rows: np.ndarray, batch: int) -> Tensor:
    """Consecutive parts of `rows` [steps, batch], the last one filled up with -1."""
    missing = -len(rows) % batch
    return torch.from_numpy(np.pad(rows, (0, missing), constant_values=-1)).view(-1, batch)
