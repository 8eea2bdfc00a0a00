"""Concept drift: which clients see the world through which pipeline of image transforms."""

import numpy as np
from pydantic import Field
from pydantic.dataclasses import dataclass

from clustered_fl.options import STRICT


@dataclass(frozen=True, config=STRICT)
class Drift:
    """Settings of concept drift (REPA, section "Experimental setup").

    REPA gives every client "a different image augmentation pipeline" and says neither of what nor
    how many transforms; `clustered_fl.data.transforms` says which there are.

    Attributes:
        transforms: n_t of one pipeline, drawn without repetition. The authors' follow-up code has
            it as a setting and publishes no value above 0.
        pipelines: number of different ones, which clients share in turn; None: each client its own,
            as in the paper. Few make groups that a grouping can be scored against.
    """

    transforms: int = Field(default=2, ge=1, le=8)
    pipelines: int | None = Field(default=None, ge=1)

    def pipeline_of(self, client: int) -> int:
        """Number of a client's pipeline."""
        return client if self.pipelines is None else client % self.pipelines


def drift_groups(drift: Drift | None, clients: int) -> np.ndarray:
    """True groups int64 [clients]: who shares a pipeline; 0 where nobody shares one on purpose."""
    if drift is None or drift.pipelines is None:
        return np.zeros(clients, dtype=np.int64)
    return np.arange(clients, dtype=np.int64) % drift.pipelines
