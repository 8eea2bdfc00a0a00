"""Clients with over- and under-represented labels (REPA, CIFAR-10)."""

from typing import Annotated

import numpy as np
from pydantic import Field

from clustered_fl.data.dataset import Dataset
from clustered_fl.data.federation import Federation
from clustered_fl.data.held_out import with_validation
from clustered_fl.data.shares import Count, Fraction, Number
from clustered_fl.errors import InputError
from clustered_fl.randomness import generator

DRAWS = 100
"""Partitions drawn before giving up on the size of the smallest client."""


def build(
    dataset: Dataset,
    seed: int,
    clients: Number,
    newcomers: Count = 0,
    alpha: Annotated[float, Field(gt=0)] | None = 0.2,
    minimum: Annotated[int, Field(ge=2)] = 10,
    held_out: Fraction = 0.2,
) -> Federation:
    """Each label's training images are divided among clients by a Dirichlet distribution.

    REPA only says "sampling data in a biased way"; this is the partitioner of the authors'
    follow-up code. Official test images are left out, so that new clients can be drawn from them.

    Args:
        clients: number of training clients.
        newcomers: number of holdout clients, see `held_out.with_validation`.
        alpha: concentration, small for strong skew; None divides every label equally.
        minimum: least number of images of a client.
        held_out: fraction of a client's images used for tests.
    Raises: InputError if no draw gives every client `minimum` images.
    """
    total, labels = clients + newcomers, dataset.y[: dataset.train_rows]
    if total * minimum > len(labels):
        most = f"{len(labels) // minimum} clients of {len(labels)} images"
        raise InputError(f"{total} clients of {minimum} images or more; allowed are 1 to {most}")
    rng = generator(seed, "shares")
    for _ in range(DRAWS):
        shares = _shares(labels, total, alpha, rng)
        if min(map(len, shares)) >= minimum:
            return with_validation(dataset, shares, newcomers, held_out, seed)
    raise InputError(
        f"in {DRAWS} draws with alpha = {alpha} some of {total} clients always had fewer than "
        f"{minimum} images; a larger alpha, fewer clients or a smaller minimum may help"
    )


def _shares(
    labels: np.ndarray, clients: int, alpha: float | None, rng: np.random.Generator
) -> list[np.ndarray]:
    parts: list[list[np.ndarray]] = [[] for _ in range(clients)]
    for label in np.unique(labels):
        rows = rng.permutation(np.flatnonzero(labels == label))
        sizes = np.array([sum(map(len, own)) for own in parts])
        share = proportions(sizes < len(labels) / clients, alpha, rng)
        cuts = np.round(np.cumsum(share)[:-1] * len(rows)).astype(np.int64)
        for own, part in zip(parts, np.split(rows, cuts), strict=True):
            own.append(part)
    return [np.concatenate(own) for own in parts]


def proportions(room: np.ndarray, alpha: float | None, rng: np.random.Generator) -> np.ndarray:
    """Shares of one label, float64 [clients], sum 1; they are equal if `alpha` is None.

    Self-balancing as in Flower's `DirichletPartitioner`: a client that already has its fair share
    of all images, and so no `room` [clients], gets no more.
    """
    if alpha is None:
        return np.full(len(room), 1 / len(room))
    drawn = rng.dirichlet(np.full(len(room), alpha)) * room
    # For tiny alpha, clients without room may have drawn everything.
    drawn = drawn if drawn.sum() > 0 else room
    return drawn / drawn.sum()
