"""Checkpoints of finished parts of a long job without rounds."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch import Tensor

from clustered_fl.engine import checkpoint
from clustered_fl.models.numerics import NUMERICS

__numerics__ = NUMERICS


class Resumable:
    """Tensors and JSON content of finished parts, written to disk every few minutes.

    Args:
        path: of the checkpoint; None writes nothing.
        identity: digest of everything the content depends on; other checkpoints are ignored.
        tell: receives a line if the checkpoint is damaged; its parts are then computed again.
        clock: returns seconds.

    Attributes:
        tensors, content: everything kept so far, including before an interruption; tensors loaded
            from the checkpoint are on the CPU.
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
        self._written, self._pause = self._began, checkpoint.SAVE_SECONDS

    @property
    def seconds(self) -> float:
        """Computing time so far, without the time between an interruption and this start."""
        return self._before + self._clock() - self._began

    def keep(self, tensors: dict[str, Tensor], content: dict[str, Any] | None = None) -> None:
        """Add or replace entries by name, and write the checkpoint if one is due."""
        self.tensors |= tensors
        self.content |= content or {}
        now = self._clock()
        if self._path and now - self._written >= self._pause:
            content = self.content | {"seconds": self.seconds}
            checkpoint.save(self._path, self._identity, self.tensors, content)
            self._written = self._clock()
            self._pause = checkpoint.pause_after(self._written - now)
