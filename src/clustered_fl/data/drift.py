"""Concept drift: which clients see the world through which pipeline of image transforms."""

import numpy as np
from pydantic import Field
from pydantic.dataclasses import dataclass

from clustered_fl.data.shares import by_first_appearance
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

    def groups(self, groups: np.ndarray) -> np.ndarray:
        """Groups [clients] that also share a pipeline; pipelines of one client make none."""
        if self.pipelines is None:
            return groups
        return by_first_appearance((g, self.pipeline_of(i)) for i, g in enumerate(groups.tolist()))
