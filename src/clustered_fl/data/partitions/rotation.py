"""Images rotated by quarter turns in each group (IFCA's "Rotated MNIST")."""

from typing import Literal

import numpy as np

from clustered_fl.data.dataset import Dataset, with_images
from clustered_fl.data.federation import Federation
from clustered_fl.data.shares import Number, equal_shares, group_of_clients
from clustered_fl.errors import InputError
from clustered_fl.randomness import generator


def build(
    dataset: Dataset,
    seed: int,
    clients: Number,
    groups: Literal[2, 4],
    samples: Number | None = None,
) -> Federation:
    """Equal random shares of training images; each group has its own share of the tests.

    Ghosh et al. (2020) rotate MNIST by 0, 90, 180 and 270 degrees and CIFAR-10 by 0 and 180.
    Quarter turns lose no pixels, so groups differ by rotation only. No image belongs to two groups,
    so each can be rotated once (`images`).

    Args:
        clients: number of clients.
        groups: number of rotations.
        samples: training images per client; None for all.
    Raises: InputError if there are too few images.
    """
    members, maps = group_of_clients(clients, groups), np.arange(len(dataset.classes))
    rows, tests = np.split(np.arange(len(dataset.y)), [dataset.train_rows])
    train = equal_shares(rows, clients, samples, generator(seed, "shares"))
    own = equal_shares(tests, groups, None, generator(seed, "tests"))
    return Federation(tuple(train), tuple(own), members, np.tile(maps, (clients, 1)), members)


def images(dataset: Dataset, federation: Federation) -> Dataset:
    """The dataset with each group's images rotated; InputError if they are not square."""
    shape = dataset.x.shape[1:]
    if len(shape) != 3 or shape[1] != shape[2]:
        raise InputError(f"rotation turns square images, and {dataset.name} has none")
    x, groups = dataset.x.copy(), int(federation.groups.max()) + 1
    for client, group in enumerate(federation.groups):
        rows = federation.rows_of(client)
        x[rows] = np.rot90(dataset.x[rows], group * 4 // groups, axes=(2, 3))
    note = f"images of {groups} groups turned by {360 // groups} degrees each"
    return with_images(dataset, x, note)
