"""The samples of each client in each step, for clients that train together.

Clients differ in their number of samples. An incomplete batch is padded with -1 (no sample), and a
client without samples left is idle. The schedule is one integer table: it is copied to a GPU at
once, and one operation reads the entry of a step.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from clustered_fl.engine.workload import Workload
from clustered_fl.models.numerics import NUMERICS

__numerics__ = NUMERICS

KEY, NUMBER, LAST = -3, -2, -1
"""Columns of a table after the rows, see `Schedule`."""
MARKS = 3
"""Number of these columns."""


class Schedule(NamedTuple):
    """Batches of K clients, in one step or in all.

    Attributes:
        rows: int64 [..., K, B] pooled rows, -1 where a batch has no sample.
        keys: int64 [..., K] keys of the dropout masks.
        numbers: int64 [..., K] number of the batch in its epoch, from 0.
        last: bool [..., K], whether the epoch is the last one, whose loss is reported.
    """

    rows: Tensor
    keys: Tensor
    numbers: Tensor
    last: Tensor

    @classmethod
    def of(cls, table: Tensor) -> "Schedule":
        """The columns of a table [..., K, B + MARKS]."""
        keys, numbers, last = table[..., -MARKS:].unbind(-1)
        return cls(table[..., :-MARKS], keys, numbers, last.bool())


def idle_table(steps: int, clients: int, batch: int) -> np.ndarray:
    """A table int64 [steps, K, B + MARKS] in which all clients are idle."""
    table = np.zeros((steps, clients, batch + MARKS), dtype=np.int64)
    table[..., :-MARKS] = -1
    return table


def steps_of_round(workload: Workload, clients: Sequence[int], batch: int) -> int:
    """Number of steps of the client with the most steps."""
    largest = max(len(workload.federation.train[client]) for client in clients)
    return workload.settings.epochs * -(-largest // batch)


def build_table(
    workload: Workload, clients: Sequence[int], round_: int, shape: tuple[int, int]
) -> Tensor:
    """All steps of a round, int64 [steps, K, B + MARKS] on the CPU, to be read by `Schedule.of`.

    `shape` is K and B. Clients beyond those given are idle.
    """
    batch, epochs = shape[1], workload.settings.epochs
    table = idle_table(steps_of_round(workload, clients, batch), *shape)
    for k, client in enumerate(clients):
        first = 0
        for epoch in range(epochs):
            rows = workload.order(client, round_, epoch)
            rows = np.pad(rows, (0, -len(rows) % batch), constant_values=-1).reshape(-1, batch)
            part = table[first : first + len(rows), k]
            part[:, :-MARKS], part[:, LAST] = rows, epoch == epochs - 1
            part[:, KEY] = workload.dropout_key(client, round_, epoch)
            part[:, NUMBER] = np.arange(len(rows))
            first += len(rows)
    return torch.from_numpy(table)
