"""The optimisers of local training, on flat parameters of one client or of many."""

import torch
from torch import Tensor

from clustered_fl.engine.workload import LocalSettings

BETAS, EPSILON = (0.9, 0.999), 1e-8
"""Adam's, as in PyTorch and in Kingma and Ba (2015)."""


class Update:
    """One round's optimiser; its state starts empty.

    Args:
        settings: local training.
        start: the start models [..., P], for FedProx.
    """

    def __init__(self, settings: LocalSettings, start: Tensor) -> None:
        self.settings, self.start = settings, start
        adam = settings.optimiser == "adam"
        self.first = torch.zeros_like(start) if adam or settings.momentum else None
        self.second = torch.zeros_like(start) if adam else None
        self.steps = torch.zeros((), device=start.device)

    def reset(self) -> None:
        """Empty the state where it lies, for a captured graph keeps using that memory."""
        for state in (self.first, self.second, self.steps):
            if state is not None:
                state.zero_()

    def step(self, model: Tensor, gradient: Tensor, active: Tensor | None = None) -> None:
        """One step on `model` [..., P] in place; `gradient` is spent.

        Args:
            active: bool [..., 1], False for models that stay as they are; None for all.
        """
        settings = self.settings
        if settings.proximal:
            gradient.add_(model - self.start, alpha=settings.proximal)
        if settings.clip is not None:
            # In double precision: the sum of millions of float32 squares is off by 1e-4.
            norm = torch.linalg.vector_norm(gradient, dim=-1, keepdim=True, dtype=torch.float64)
            gradient.mul_((settings.clip / (norm + 1e-12)).clamp(max=1.0).float())
        direction = self._direction(gradient)
        if active is not None:
            direction = direction.masked_fill(~active, 0)
        model.add_(direction, alpha=-settings.lr)

    def _direction(self, gradient: Tensor) -> Tensor:
        """Where to go, in units of the learning rate."""
        if self.second is not None:
            return self._adam(gradient)
        if self.first is None:
            return gradient
        return self.first.mul_(self.settings.momentum).add_(gradient)

    def _adam(self, gradient: Tensor) -> Tensor:
        """Kingma and Ba (2015), Algorithm 1."""
        self.steps += 1
        self.first.lerp_(gradient, 1 - BETAS[0])
        self.second.mul_(BETAS[1]).addcmul_(gradient, gradient, value=1 - BETAS[1])
        mean = self.first / (1 - BETAS[0] ** self.steps)
        return mean / ((self.second / (1 - BETAS[1] ** self.steps)).sqrt() + EPSILON)
