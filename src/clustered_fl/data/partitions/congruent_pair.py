"""Two clients that one model can serve (CFL Fig. 8, congruent)."""

import numpy as np

from clustered_fl.data.dataset import Dataset
from clustered_fl.data.federation import Federation
from clustered_fl.data.shares import equal_shares
from clustered_fl.randomness import generator


def build(dataset: Dataset, seed: int, samples: int | None = None) -> Federation:
    """The lower and the upper half of the labels; there is one true group."""
    classes = len(dataset.classes)
    upper = dataset.y >= classes // 2
    split = dataset.train_rows
    train, tests = [], []
    for client, holds in enumerate((~upper, upper)):
        rows = np.flatnonzero(holds[:split])
        rng = generator(seed, "shares", client)
        train += equal_shares(rows, 1, samples, rng)
        tests.append(split + np.flatnonzero(holds[split:]))
    maps = np.tile(np.arange(classes), (2, 1))
    return Federation(tuple(train), tuple(tests), np.arange(2), maps, np.zeros(2, dtype=np.int64))
