"""FLT's Scenario 4 with a part of everybody's images, for methods that are compared in minutes."""

from dataclasses import replace
from typing import Annotated

import numpy as np
from pydantic import Field

from clustered_fl.data.dataset import Dataset
from clustered_fl.data.federation import Federation
from clustered_fl.data.partitions import structured
from clustered_fl.randomness import generator


def build(
    dataset: Dataset,
    seed: int,
    clients: int,
    share: Annotated[float, Field(gt=0, le=1)],
    labels: Annotated[int, Field(ge=1)] = 5,
) -> Federation:
    """Clients, labels and tests as `structured` has them; every client keeps a random part.

    Sizes stay as unequal as they were, which fewer clients or fewer labels would not give.

    Args:
        clients, labels: see `structured.build`.
        share: part of its training images that a client keeps, one at least.
    Raises:
        InputError: as `structured.build`.
    """
    whole = structured.build(dataset, seed, clients, labels)
    train = [_part(rows, share, seed, client) for client, rows in enumerate(whole.train)]
    return replace(whole, train=tuple(train))


def _part(rows: np.ndarray, share: float, seed: int, client: int) -> np.ndarray:
    kept = max(1, round(share * len(rows)))
    return np.sort(generator(seed, "thinned", client).permutation(rows)[:kept])
