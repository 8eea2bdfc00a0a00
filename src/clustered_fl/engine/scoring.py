"""Means of a task's measure over rows, summed on the device.

Sums of many models and clients are read from a GPU together, because it is idle while it is read.
Only the number of words is read after every batch of articles.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from clustered_fl.engine.workload import Workload
from clustered_fl.models.numerics import NUMERICS

__numerics__ = NUMERICS

ON_CPU, ON_GPU = 200, 1000
"""Rows per forward pass: what fits into a cache, and what keeps a GPU busy."""


def at_a_time(device: torch.device) -> int:
    """Rows per forward pass on a device."""
    return ON_CPU if device.type == "cpu" else ON_GPU


Sums = tuple[Tensor, np.ndarray]
"""Sums of a measure, [batches, clients] on the device, and number of terms, [clients]."""


@torch.no_grad()
def sums(
    workload: Workload,
    answer: Callable,
    rows: np.ndarray,
    clients: Sequence[int],
    measure: Callable,
) -> Sums:
    """Sums of `measure` in the labels of each client.

    Args:
        answer: function from rows to the network's outputs.
        rows: pooled rows [n], the same for all clients; only their labels differ.
        measure: function of outputs and targets, such as a task's `score`.
    """
    found, terms, size = [], np.zeros(len(clients)), at_a_time(workload.device)
    for first in range(0, len(rows), size):
        part = rows[first : first + size]
        answers = answer(part)
        for i, client in enumerate(clients):
            targets = workload.targets(part, client)
            found.append(measure(answers, targets))
            terms[i] += workload.task.terms(targets)
    return torch.stack(found).view(-1, len(clients)), terms


def means(found: Sequence[Sums]) -> list[np.ndarray]:
    """Mean of the measure of each of several `sums`: float64 [clients]."""
    parts = [each for each, _ in found]
    whole = torch.cat([part.flatten() for part in parts]).cpu().double()
    read = whole.split([part.numel() for part in parts])
    return [
        own.view(part.shape).numpy().sum(0) / terms
        for own, (part, terms) in zip(read, found, strict=True)
    ]
