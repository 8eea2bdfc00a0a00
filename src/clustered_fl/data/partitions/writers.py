"""One client per writer (FLT Scenario 3 and REPA, FEMNIST of LEAF)."""

import numpy as np

from clustered_fl.data.dataset import Dataset
from clustered_fl.data.federation import Federation
from clustered_fl.data.held_out import with_tests
from clustered_fl.data.shares import Count, Number
from clustered_fl.errors import InputError
from clustered_fl.randomness import generator


def build(dataset: Dataset, seed: int, clients: Number, newcomers: Count = 0) -> Federation:
    """The first writers with training and test images; true groups are unknown.

    The dataset's own split of each writer's images is kept. Newcomers are holdout clients, see
    `held_out.with_validation`, drawn at random from these writers, because writers are not in
    random order. Without newcomers the seed has no effect.

    Args:
        clients: number of training writers.
        newcomers: number of additional writers with validation images only.
    Raises: InputError if rows have no owners, or there are too few writers.
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
