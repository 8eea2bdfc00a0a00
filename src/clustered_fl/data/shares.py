"""Shares of rows (positions in a dataset's pooled index), and groups of clients, for partitions."""

from collections.abc import Hashable, Iterable, Sequence
from typing import Annotated

import numpy as np
from numpy.random import Generator
from pydantic import Field

from clustered_fl.errors import InputError

Number = Annotated[int, Field(ge=1)]
Count = Annotated[int, Field(ge=0)]
Fraction = Annotated[float, Field(gt=0, lt=1)]
Shares = Sequence[np.ndarray]
"""Rows of each client."""


def group_of_clients(clients: int, groups: int) -> np.ndarray:
    """Group of each client, in blocks equal to within one client; InputError if one is empty."""
    if not 1 <= groups <= clients:
        raise InputError(
            f"{groups} groups for {clients} clients; allowed are 1 to the number of clients"
        )
    return np.arange(clients) * groups // clients


def equal_shares(
    rows: np.ndarray, clients: int, samples: int | None, rng: Generator
) -> list[np.ndarray]:
    """Disjoint random shares of equal size, one per client.

    With `samples` the first rows of each: for one seed smaller sets are subsets of larger ones.
    Raises: InputError if a share would be empty or smaller than `samples`.
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


def by_first_appearance(keys: Iterable[Hashable]) -> np.ndarray:
    """Groups int64 [n] of equal keys, numbered in the order of their first appearance."""
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)


def last_of_each(groups: np.ndarray, clients: np.ndarray, count: int) -> np.ndarray:
    """The last `count` of `clients`, in their order, in each group; `groups` is of all clients.

    Raises: InputError if no other client of a group would be left.
    """
    own = [clients[groups[clients] == group] for group in range(groups.max() + 1)]
    fewest = min(map(len, own))
    if count >= fewest:
        raise InputError(
            f"{count} newcomers of a cluster with {fewest} clients whose data do not change; "
            "one at least must be there from the start to the end"
        )
    return np.concatenate([each[len(each) - count :] for each in own])


def refuse_shared(parts: Shares, what: str) -> None:
    """InputError naming setting `what` if a row has two clients; `parts`: distinct rows of each."""
    rows, holders = np.unique(np.concatenate(parts), return_counts=True)
    if (holders > 1).any():
        row = int(rows[holders > 1][0])
        raise InputError(f"{what} needs clients without images in common; row {row} has several")
