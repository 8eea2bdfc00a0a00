"""The clients of `dirichlet`, each with a part of its images: as many clients, less work."""

from dataclasses import replace
from typing import Annotated

import numpy as np
from pydantic import Field

from clustered_fl.data.dataset import Dataset
from clustered_fl.data.drift import Drift
from clustered_fl.data.federation import Federation
from clustered_fl.data.held_out import Fraction, Number
from clustered_fl.data.partitions import dirichlet


def build(
    dataset: Dataset,
    seed: int,
    clients: Number,
    share: Annotated[float, Field(gt=0, le=1)],
    alpha: Annotated[float, Field(gt=0)] | None = 0.2,
    minimum: Annotated[int, Field(ge=2)] = 10,
    held_out: Fraction = 0.2,
    drift: Drift | None = None,
) -> Federation:
    """What everybody keeps of its training and of its validation images is drawn at random.

    REPA compares clients of CIFAR-10: 80 clients share the 50,000 images, 625 each on average;
    embedding them and training with them costs in proportion. Fewer clients would change what is
    compared, fewer images only make it less sure.

    Args:
        clients: that train; nobody holds out.
        share: part of its images that a client keeps, at least one of either kind.
        alpha, minimum, held_out, drift: of `dirichlet`, before anything is taken away.
    Raises:
        InputError: if clients would be too small before.
    """
    whole = dirichlet.build(dataset, seed, clients, 0, alpha, minimum, held_out, drift)
    return replace(whole, train=_thin(whole.train, share), test_sets=_thin(whole.test_sets, share))


def _thin(shares: tuple[np.ndarray, ...], share: float) -> tuple[np.ndarray, ...]:
    """The first rows of each client, which `held_out` has shuffled."""
    return tuple(rows[: max(1, round(share * len(rows)))] for rows in shares)
