"""Clients that hold the same kind of images and differ in what they call them."""

import numpy as np

from clustered_fl.data.dataset import Dataset
from clustered_fl.data.federation import Federation
from clustered_fl.data.shares import equal_shares, group_of_clients
from clustered_fl.randomness import generator


def relabelled(
    dataset: Dataset, seed: int, clients: int, samples: int | None, newcomers: int, maps: np.ndarray
) -> Federation:
    """Equal random shares, one label map per group, everybody tested on all test rows.

    Args:
        samples: of each client, None for all there are.
        newcomers: samples of one newcomer per group, from test rows that nobody else is tested on.
        maps: [groups, classes].
    """
    groups = group_of_clients(clients, len(maps))
    rows = np.arange(dataset.train_rows)
    train = equal_shares(rows, clients, samples, generator(seed, "shares"))
    test = np.arange(dataset.train_rows, len(dataset.y))
    sets, test_of = [test], [0] * clients
    if newcomers:
        rng = generator(seed, "newcomers")
        joining = equal_shares(test, len(maps) * 2, newcomers, rng)[: len(maps)]
        train, groups = train + joining, np.concatenate([groups, np.arange(len(maps))])
        sets, test_of = [test, np.setdiff1d(test, joining)], test_of + [1] * len(maps)
    return Federation(
        tuple(train), tuple(sets), np.array(test_of), maps[groups], groups, len(groups) - clients
    )
