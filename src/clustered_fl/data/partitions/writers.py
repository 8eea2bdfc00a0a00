"""Every client is a writer (FLT Scenario 3 and REPA, FEMNIST of LEAF)."""

import numpy as np

from clustered_fl.data.dataset import Dataset
from clustered_fl.data.federation import Federation
from clustered_fl.data.held_out import with_tests
from clustered_fl.data.shares import Count, Number
from clustered_fl.errors import InputError
from clustered_fl.randomness import generator


def build(dataset: Dataset, seed: int, clients: Number, newcomers: Count = 0) -> Federation:
    """The first writers that have training and test images; no true groups are known.

    The data set's own division of each writer's images is kept. Newcomers are holdout clients, see
    `held_out.with_validation`, drawn at random among these writers, because the data's order of
    them is not random. Without newcomers the seed changes nothing.

    Args:
        clients: writers that train.
        newcomers: so many more hold validation images only.
    Raises: InputError if the data has no owners, or not that many.
    """
    if not dataset.owner.size:
        raise InputError(f"{dataset.name} has no owners; partition writers needs them")
    split, owner = dataset.train_rows, dataset.owner
    able = np.intersect1d(owner[:split], owner[split:])
    total = clients + newcomers
    if total > len(able):
        raise InputError(f"{total} clients; allowed are 1 to {len(able)}, the writers there are")
    drawn = generator(seed, "newcomers").permutation(total)
    there, late = able[np.sort(drawn[newcomers:])], able[np.sort(drawn[:newcomers])]
    whole = [np.flatnonzero(owner == writer) for writer in late]
    train = [np.flatnonzero(owner[:split] == writer) for writer in there]
    tests = [split + np.flatnonzero(owner[split:] == writer) for writer in there]
    return with_tests(dataset, [*train, *whole], [*tests, *whole], None, newcomers)
