"""Two clients that one model can serve (CFL Fig. 8, congruent)."""

import numpy as np

from clustered_fl.data.dataset import Dataset
from clustered_fl.data.federation import Federation
from clustered_fl.data.held_out import with_tests
from clustered_fl.data.shares import Number, equal_shares
from clustered_fl.randomness import generator


def build(dataset: Dataset, seed: int, samples: Number | None = None) -> Federation:
    """One client has the lower half of the labels, the other the upper; one true group.

    Args:
        samples: training samples of a client; None for all.
    """
    upper = dataset.y >= len(dataset.classes) // 2
    split = dataset.train_rows
    train, tests = [], []
    for client, holds in enumerate((~upper, upper)):
        rows = np.flatnonzero(holds[:split])
        train += equal_shares(rows, 1, samples, generator(seed, "shares", client))
        tests.append(split + np.flatnonzero(holds[split:]))
    return with_tests(dataset, train, tests, None)
