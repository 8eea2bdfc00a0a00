"""Concept drift: which pipeline of image transforms each client has."""

import numpy as np
from pydantic import Field
from pydantic.dataclasses import dataclass

from clustered_fl.data.shares import by_first_appearance
from clustered_fl.options import STRICT


@dataclass(frozen=True, config=STRICT)
class Drift:
    """Settings of concept drift (REPA, section "Experimental setup").

    REPA gives every client "a different image augmentation pipeline" but states neither the
    transforms nor their number; `clustered_fl.data.transforms` lists those used here.

    Attributes:
        transforms: number n_t of transforms in a pipeline, drawn without repetition. The authors'
            follow-up code has this setting, but publishes no value above 0.
        pipelines: number of different pipelines, assigned to clients in turn; None gives each
            client its own, as in the paper. A few pipelines make true groups.
    """

    transforms: int = Field(default=2, ge=1, le=8)
    pipelines: int | None = Field(default=None, ge=1)

    def pipeline_of(self, client: int) -> int:
        """Number of a client's pipeline."""
        return client if self.pipelines is None else client % self.pipelines

    def groups(self, groups: np.ndarray) -> np.ndarray:
        """Groups [clients] by group and pipeline; unchanged if each client has its own pipeline."""
        if self.pipelines is None:
            return groups
        return by_first_appearance((g, self.pipeline_of(i)) for i, g in enumerate(groups.tolist()))
