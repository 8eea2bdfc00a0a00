"""Every client is a writer (FLT Scenario 3, FEMNIST of LEAF)."""

import numpy as np

from clustered_fl.data.dataset import Dataset
from clustered_fl.data.federation import Federation
from clustered_fl.errors import InputError


def build(dataset: Dataset, seed: int, clients: int) -> Federation:
    """The first writers that have training and test images; no true groups are known.

    The data set's own division of each writer's images is kept, so that the seed changes nothing.

    Raises:
        InputError: if the data has no owners, or not that many.
    """
    if not dataset.owner.size:
        raise InputError(f"{dataset.name} does not say who wrote what; partition writers needs it")
    split = dataset.train_rows
    able = np.intersect1d(dataset.owner[:split], dataset.owner[split:])
    if not 1 <= clients <= len(able):
        raise InputError(f"{clients} clients; allowed are 1 to {len(able)}, the writers there are")
    train = tuple(np.flatnonzero(dataset.owner[:split] == who) for who in able[:clients])
    tests = tuple(split + np.flatnonzero(dataset.owner[split:] == who) for who in able[:clients])
    maps = np.tile(np.arange(len(dataset.classes)), (clients, 1))
    return Federation(train, tests, np.arange(clients), maps, np.zeros(clients, dtype=np.int64))
