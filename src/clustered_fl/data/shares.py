"""Shares of rows and groups of clients, from which partitions are made.

Rows are positions in a dataset's pooled index (official training rows first, then test rows).
"""

import numpy as np
from numpy.random import Generator

from clustered_fl.errors import InputError


def group_of_clients(clients: int, groups: int) -> np.ndarray:
    """True group of each client [clients]: contiguous blocks whose sizes differ by at most one.

    Raises:
        InputError: if there are more groups than clients, or none.
    """
    if not 1 <= groups <= clients:
        raise InputError(
            f"{groups} groups for {clients} clients; allowed are 1 to the number of clients"
        )
    return np.arange(clients) * groups // clients


def equal_shares(
    rows: np.ndarray, clients: int, samples: int | None, rng: Generator
) -> list[np.ndarray]:
    """Disjoint random shares of equal size, one per client.

    With `samples`, the first `samples` rows of each share: for one seed the smaller data sets are
    subsets of the larger ones, so that a curve over sizes changes nothing but the size.

    Raises:
        InputError: if a share would be empty or smaller than `samples`.
    Source: CFL section V-A, "equally sized random subset of the total training data".
    """
    share = len(rows) // clients
    wanted = share if samples is None else samples
    if not 1 <= wanted <= share:
        raise InputError(
            f"{wanted} samples per client asked of {len(rows)} rows for {clients} clients; "
            f"allowed are 1 to {share}"
        )
    shuffled = rng.permutation(rows)
    return [shuffled[i * share : i * share + wanted] for i in range(clients)]
