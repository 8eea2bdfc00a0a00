"""Clients that hold the same kind of images."""

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
    """Equal random shares; every client is tested on a part of its own.

    Unlike `dirichlet` without skew it can deal fewer images than there are.

    Args:
        clients: that train.
        samples: images of a client, those that it is tested on included; None for all there are.
        newcomers: holdout clients, see `held_out.with_validation`.
        held_out: part of a client's images that it is tested on.
    Raises: InputError if there are too few images.
    """
    total, rows = clients + newcomers, np.arange(dataset.train_rows)
    shares = equal_shares(rows, total, samples, generator(seed, "shares"))
    return with_validation(dataset, shares, newcomers, held_out, seed)
