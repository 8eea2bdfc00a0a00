"""What a long job without rounds has finished, so that an interrupted one need not do it again."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch import Tensor

from clustered_fl.engine import checkpoint
from clustered_fl.models.numerics import NUMERICS

__numerics__ = NUMERICS


class Resumable:
    """Tensors and JSON content that are kept, and written every few minutes.

    Args:
        path: of the checkpoint; None: nothing is written.
        identity: digest of everything that they depend on; another one's are not found.
        tell: receives a line if what was kept is damaged, which is then done again.
        clock: gives seconds.

    Attributes:
        tensors, content: all that was kept, also before an interruption; tensors of that time are
            on the CPU.
    """

    def __init__(
        self,
        path: Path | None = None,
        identity: str = "",
        tell: Callable[[str], None] = lambda line: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        found = checkpoint.load(path, identity, tell) if path else None
        self.tensors: dict[str, Tensor]
        self.content: dict[str, Any]
        self.tensors, self.content = found or ({}, {})
        self._path, self._identity, self._clock = path, identity, clock
        self._before, self._began = self.content.pop("seconds", 0.0), clock()
        self._written = self._began

    @property
    def seconds(self) -> float:
        """Spent so far; those between an interruption and this start do not count."""
        return self._before + self._clock() - self._began

    def keep(self, tensors: dict[str, Tensor], content: dict[str, Any] | None = None) -> None:
        """Add these, or replace what has their names; write all if it is time to."""
        self.tensors |= tensors
        self.content |= content or {}
        if self._path and self._clock() - self._written >= checkpoint.SAVE_SECONDS:
            content = self.content | {"seconds": self.seconds}
            checkpoint.save(self._path, self._identity, self.tensors, content)
            self._written = self._clock()
