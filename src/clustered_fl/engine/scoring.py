"""Means of a task's measure over rows, summed on the device.

Results are read from the device once, after the last batch, so a GPU never waits between batches.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch

from clustered_fl.engine.workload import Workload
from clustered_fl.models.numerics import NUMERICS

__numerics__ = NUMERICS

ON_CPU, ON_GPU = 200, 1000
"""Rows per forward pass: what fits into a cache, and what keeps a GPU busy."""


def at_a_time(device: torch.device) -> int:
    """Rows per forward pass on a device."""
    return ON_CPU if device.type == "cpu" else ON_GPU


@torch.no_grad()
def means(
    workload: Workload,
    answer: Callable,
    rows: np.ndarray,
    clients: Sequence[int],
    measure: Callable,
) -> np.ndarray:
    """Mean of `measure`, a sum over terms, in the labels of each client: float64 [clients].

    Args:
        answer: function from rows to the network's outputs.
        rows: pooled rows [n], the same for all clients; only their labels differ.
        measure: function of outputs and targets, such as a task's `score`.
    """
    sums, terms, size = [], np.zeros(len(clients)), at_a_time(workload.device)
    for first in range(0, len(rows), size):
        part = rows[first : first + size]
        answers = answer(part)
        for i, client in enumerate(clients):
            targets = workload.targets(part, client)
            sums.append(measure(answers, targets))
            terms[i] += workload.task.terms(targets)
    found = torch.stack(sums).cpu().double().numpy().reshape(-1, len(clients))
    return found.sum(0) / terms
