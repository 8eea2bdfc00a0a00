"""Clients that hold the same kind of images, unless they look at them through a pipeline."""

import numpy as np

from clustered_fl.data.dataset import Dataset
from clustered_fl.data.drift import Drift, drift_groups
from clustered_fl.data.federation import Federation
from clustered_fl.data.held_out import Count, Fraction, Number, with_validation
from clustered_fl.data.shares import equal_shares
from clustered_fl.randomness import generator


def build(
    dataset: Dataset,
    seed: int,
    clients: Number,
    samples: Number | None = None,
    newcomers: Count = 0,
    held_out: Fraction = 0.2,
    drift: Drift | None = None,
) -> Federation:
    """Equal random shares, of which everybody is tested on a part.

    Unlike `dirichlet` without skew it can deal fewer images than there are. True groups: clients
    with the same pipeline.

    Args:
        clients: that train.
        samples: images of a client, those that it is tested on included; None for all there are.
        newcomers: holdout clients, see `held_out.with_validation`.
        held_out: part of a client's images that it is tested on.
        drift: how clients' images look, see `data.transforms`.
    Raises:
        InputError: if there are too few images.
    """
    everybody, rows = clients + newcomers, np.arange(dataset.train_rows)
    shares = equal_shares(rows, everybody, samples, generator(seed, "shares"))
    groups = drift_groups(drift, everybody)
    return with_validation(dataset, shares, groups, newcomers, held_out, seed)
