"""Every client holds texts of one class (CFL Fig. 10)."""

import numpy as np

from clustered_fl.data.dataset import Dataset
from clustered_fl.data.federation import Federation
from clustered_fl.data.shares import equal_shares, group_of_clients
from clustered_fl.randomness import generator


def build(
    dataset: Dataset, seed: int, clients: int, held_out: float, samples: int | None = None
) -> Federation:
    """Equal shares of one topic; a client is tested on the fraction `held_out` of its own."""
    groups = group_of_clients(clients, len(dataset.classes))
    train, tests = [], []
    for topic in range(len(dataset.classes)):
        rows = np.flatnonzero(dataset.y[: dataset.train_rows] == topic)
        members = int((groups == topic).sum())
        for share in equal_shares(rows, members, samples, generator(seed, "shares", topic)):
            cut = round(len(share) * held_out)
            tests.append(share[:cut])
            train.append(share[cut:])
    maps = np.tile(np.arange(len(dataset.classes)), (clients, 1))
    return Federation(tuple(train), tuple(tests), np.arange(clients), maps, groups)
