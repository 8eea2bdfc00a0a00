"""Means of what a task measures over a client's rows, summed where they are computed.

Nothing is read from the device before the last batch, so that a GPU does not wait between batches.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch

from clustered_fl.engine.workload import Workload
from clustered_fl.models.numerics import NUMERICS

__numerics__ = NUMERICS

BATCH = {"cpu": 200, "cuda": 1000}
"""Rows that a network answers at once: what a cache holds, and what keeps a GPU busy."""


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
        answer: the network's answers to some rows.
        rows: pooled rows [n], the same for all clients; only their labels differ.
        measure: of a task, given answers and targets.
    """
    sums, terms, size = [], np.zeros(len(clients)), BATCH[workload.device.type]
    for first in range(0, len(rows), size):
        part = rows[first : first + size]
        answers = answer(part)
        for i, client in enumerate(clients):
            targets = workload.targets(part, client)
            sums.append(measure(answers, targets))
            terms[i] += workload.task.terms(targets)
    found = torch.stack(sums).cpu().double().numpy().reshape(-1, len(clients))
    return found.sum(0) / terms
