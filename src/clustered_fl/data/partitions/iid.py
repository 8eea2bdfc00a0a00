"""Clients with data from the same distribution."""

import numpy as np

from clustered_fl.data.dataset import Dataset
from clustered_fl.data.federation import Federation
from clustered_fl.data.held_out import with_validation
from clustered_fl.data.shares import Count, Fraction, Number, equal_shares
from clustered_fl.randomness import generator


def build(
    dataset: Dataset,
    seed: int,
    clients: Number,
    samples: Number | None = None,
    newcomers: Count = 0,
    held_out: Fraction = 0.2,
) -> Federation:
    """Equal random shares; every client is tested on a part of its own images.

    Unlike `dirichlet` without skew, it can use only some of the images.

    Args:
        clients: number of training clients.
        samples: images per client, including its tests; None for all.
        newcomers: number of holdout clients, see `held_out.with_validation`.
        held_out: fraction of a client's images used for tests.
    Raises: InputError if there are too few images.
    """
    total, rows = clients + newcomers, np.arange(dataset.train_rows)
    shares = equal_shares(rows, total, samples, generator(seed, "shares"))
    return with_validation(dataset, shares, newcomers, held_out, seed)
