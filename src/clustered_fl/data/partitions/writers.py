"""Every client is a writer (FLT Scenario 3 and REPA, FEMNIST of LEAF)."""

from typing import Annotated

import numpy as np
from pydantic import Field

from clustered_fl.data.dataset import Dataset
from clustered_fl.data.federation import Federation
from clustered_fl.errors import InputError
from clustered_fl.randomness import generator


def build(
    dataset: Dataset, seed: int, clients: int, newcomers: Annotated[int, Field(ge=0)] = 0
) -> Federation:
    """The first writers that have training and test images; no true groups are known.

    The data set's own division of each writer's images is kept. Newcomers are REPA's holdout
    clients, drawn among these writers, because the data's order of them is no random one: all their
    images are one validation set, by which they are placed and on which they are tested. Without
    newcomers the seed changes nothing.

    Args:
        clients: writers that train.
        newcomers: so many more hold validation images only.
    Raises:
        InputError: if the data has no owners, or not that many.
    """
    if not dataset.owner.size:
        raise InputError(f"{dataset.name} does not say who wrote what; partition writers needs it")
    split, owner = dataset.train_rows, dataset.owner
    able = np.intersect1d(owner[:split], owner[split:])
    everybody = clients + newcomers
    if clients < 1 or everybody > len(able):
        raise InputError(
            f"{everybody} clients; allowed are 1 to {len(able)}, the writers there are"
        )
    late = np.zeros(everybody, dtype=bool)
    late[generator(seed, "newcomers").permutation(everybody)[:newcomers]] = True
    whole = [np.flatnonzero(owner == who) for who in able[:everybody][late]]
    there = able[:everybody][~late]
    train = [np.flatnonzero(owner[:split] == who) for who in there]
    tests = [split + np.flatnonzero(owner[split:] == who) for who in there]
    maps = np.tile(np.arange(len(dataset.classes)), (everybody, 1))
    alike = np.zeros(everybody, dtype=np.int64)
    own = np.arange(everybody)
    return Federation((*train, *whole), (*tests, *whole), own, maps, alike, newcomers)
