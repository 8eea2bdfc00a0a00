"""What each client trains on in each step, for clients that train at once.

Clients differ in their number of samples. A batch that a client cannot fill is filled up with -1
for no sample, so that no sample counts twice; a client without samples left is idle.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from clustered_fl.engine.workload import Workload
from clustered_fl.models.numerics import NUMERICS

__numerics__ = NUMERICS


class Schedule(NamedTuple):
    """What K clients train on in each step.

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
        """No client trains."""
        marks = torch.zeros(steps, clients, dtype=torch.int64)
        rows = torch.full((steps, clients, batch), -1)
        return cls(rows, marks, marks.clone(), marks.bool())

    def to(self, device: torch.device) -> "Schedule":
        """The same on a device."""
        return Schedule(*(part.to(device) for part in self))


def build_schedule(
    workload: Workload, clients: Sequence[int], round_: int, shape: tuple[int, int, int]
) -> Schedule:
    """All epochs of a round, in a multiple of the steps of a block.

    `shape` is the steps of a block, K and B. Clients beyond those given are idle.
    """
    block, stacked, batch = shape
    epochs = workload.settings.epochs
    sizes = [len(workload.federation.train[client]) for client in clients]
    blocks = -(-epochs * -(-max(sizes) // batch) // block)
    schedule = Schedule.idle(blocks * block, stacked, batch)
    for k, client in enumerate(clients):
        first = 0
        for epoch in range(epochs):
            rows = workload.order(client, round_, epoch)
            rows = np.pad(rows, (0, -len(rows) % batch), constant_values=-1).reshape(-1, batch)
            steps = slice(first, first + len(rows))
            schedule.rows[steps, k] = torch.from_numpy(rows)
            schedule.keys[steps, k] = workload.dropout_key(client, round_, epoch)
            schedule.numbers[steps, k] = torch.arange(len(rows))
            schedule.last[steps, k] = epoch == epochs - 1
            first = steps.stop
    return schedule
