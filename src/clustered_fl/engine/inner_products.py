"""Inner products of weight updates, in double precision and on their device.

The separation gap is a difference of cosines close to one, and distances between models are
differences of nearly equal products; float32 would lose them. Updates may fill half of the memory,
so columns are converted in blocks.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from clustered_fl.models.numerics import NUMERICS

__numerics__ = NUMERICS

COLUMNS, ENTRIES = 2**17, 2**26
"""Most columns of a block, and most numbers in it over all vectors."""
ROWS = 256
"""Most vectors whose products with later ones are computed in one call."""


def gram(vectors: Sequence[Tensor], centred: bool = False) -> np.ndarray:
    """Gram matrix of n vectors [P]: float64 [n, n], exactly symmetric.

    A product of vectors in different groups of `ROWS` is computed once, not twice. For FedSEM's
    2,400 models this takes 0.6 of the time of all products.

    Args:
        vectors: rows of a matrix or separate vectors; they are not copied into one.
        centred: subtract the mean of the vectors first.
    """
    found = torch.zeros(len(vectors), len(vectors), dtype=torch.float64, device=vectors[0].device)
    firsts = range(0, len(vectors), ROWS)
    for part in _blocks(vectors, len(vectors)):
        if centred:
            part -= part.mean(0)
        for first in firsts:
            found[first : first + ROWS, first:] += part[first : first + ROWS] @ part[first:].t()
    for first, last in pairwise(firsts):
        found[last:, first:last] = found[first:last, last:].t()
    return ((found + found.t()) / 2).cpu().numpy()


def inner_products(first: Sequence[Tensor], second: Sequence[Tensor]) -> np.ndarray:
    """Inner products of n vectors with m others, all [P]: float64 [n, m]."""
    largest = max(len(first), len(second))
    found = torch.zeros(len(first), len(second), dtype=torch.float64, device=first[0].device)
    for a, b in zip(_blocks(first, largest), _blocks(second, largest), strict=True):
        found += a @ b.t()
    return found.cpu().numpy()


def _blocks(vectors: Sequence[Tensor], rows: int) -> Iterator[Tensor]:
    """Consecutive blocks of columns of n vectors [P] as float64; smaller for more `rows`."""
    columns = max(1, min(COLUMNS, ENTRIES // rows))
    for first in range(0, len(vectors[0]), columns):
        yield torch.stack([vector[first : first + columns] for vector in vectors]).double()
