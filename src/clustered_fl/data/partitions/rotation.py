"""Clients that hold their images in different ways: quarter turns (IFCA's "Rotated MNIST")."""

import numpy as np

from clustered_fl.data import dataset as datasets
from clustered_fl.data.dataset import Dataset
from clustered_fl.data.federation import Federation
from clustered_fl.data.held_out import Number
from clustered_fl.data.shares import equal_shares, group_of_clients
from clustered_fl.errors import InputError
from clustered_fl.randomness import generator

TURNS = (2, 4)


def build(
    dataset: Dataset, seed: int, clients: Number, groups: Number, samples: Number | None = None
) -> Federation:
    """Equal random shares of training images; each group is tested on its own share of the tests.

    Ghosh et al. (2020) turn MNIST by 0, 90, 180 and 270 degrees and CIFAR-10 by 0 and 180. Quarter
    turns lose no pixel, so that nothing but the turn tells groups apart. No image belongs to two
    groups, so that images can be turned in their place (`images`).

    Args:
        clients, groups: numbers of clients and of turns.
        samples: training images of a client; None for all there are.
    Raises:
        InputError: if the turns are no quarter turns, or there are too few images.
    """
    if groups not in TURNS:
        raise InputError(f"rotation of {groups} groups; allowed are {TURNS[0]} and {TURNS[1]}")
    members, maps = group_of_clients(clients, groups), np.arange(len(dataset.classes))
    rows, tests = np.split(np.arange(len(dataset.y)), [dataset.train_rows])
    train = equal_shares(rows, clients, samples, generator(seed, "shares"))
    own = equal_shares(tests, groups, None, generator(seed, "tests"))
    return Federation(tuple(train), tuple(own), members, np.tile(maps, (clients, 1)), members)


def images(dataset: Dataset, federation: Federation) -> Dataset:
    """The dataset after every group has turned its training and test images in their place.

    Rows that nobody holds stay as they are.

    Raises:
        InputError: if the images are not square.
    """
    shape = dataset.x.shape[1:]
    if len(shape) != 3 or shape[1] != shape[2]:
        raise InputError(f"rotation turns square images, and {dataset.name} has none")
    x, groups = dataset.x.copy(), federation.groups
    for group in range(groups.max() + 1):
        held = [federation.train[client] for client in np.flatnonzero(groups == group)]
        rows = np.concatenate([*held, federation.test_sets[group]])
        quarters = group * 4 // (int(groups.max()) + 1)
        x[rows] = np.rot90(dataset.x[rows], quarters, axes=(2, 3))
    note = f"{dataset.note}; " if dataset.note else ""
    kept = (dataset.y, dataset.train_rows, dataset.classes, dataset.complete)
    note += (
        f"images of {groups.max() + 1} groups turned by {360 // (groups.max() + 1)} degrees each"
    )
    return datasets.build(dataset.name, dataset.source, x, *kept, note, owner=dataset.owner)
