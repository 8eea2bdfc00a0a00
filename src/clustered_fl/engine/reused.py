"""Memory for updates that is used again in the next round.

The system clears fresh memory page by page, 2 to 3 us for every 1,024 numbers. A round of 20 LEAF
networks would wait for 0.3 to 0.4 s.
"""

import weakref

import numpy as np
import torch
from torch import Tensor

from clustered_fl.models.numerics import NUMERICS

__numerics__ = NUMERICS

ALIGNMENT = 64
"""Bytes, as of PyTorch's memory: bits may depend on it."""
LARGEST = 2**30
"""Bytes that are kept between two rounds."""


class Reused:
    """Lends one block of memory, and another one while anything still refers to the first."""

    def __init__(self) -> None:
        self._block = np.empty(0, np.uint8)
        self._lent = lambda: None

    def empty(self, rows: int, columns: int, device: torch.device) -> Tensor:
        """A float32 matrix [rows, columns] with any content.

        Its memory is lent again when it and all its views are gone. Above `LARGEST` bytes it is
        memory of its own.
        """
        size = 4 * rows * columns
        if device.type != "cpu" or size > LARGEST:
            return torch.empty(rows, columns, device=device)
        if self._lent() is not None or len(self._block) < size + ALIGNMENT:
            self._block = np.empty(size + ALIGNMENT, np.uint8)
        first = -self._block.ctypes.data % ALIGNMENT
        lent = self._block[first : first + size].view(np.float32)
        # PyTorch refers to `lent` as long as a tensor uses its memory.
        self._lent = weakref.ref(lent)
        return torch.from_numpy(lent).view(rows, columns)
