"""The optimiser's step of all clients of a stack at once, in few passes over their parameters.

Models are a matrix [K, P]. A pass is one operation that reads or writes a matrix of that size; on a
GPU a step of a large network takes as long as its passes. They are, besides those of the gradient:

    passes  for
    1       writing the gradient (`Objective.gradients`)
    1       the step of SGD
    1       momentum
    2       FedProx
    2       a clipped gradient: its norm, its new length
    2       Adam in place of the step of SGD

This makes 2 for plain SGD, 3 with momentum, 5 for Adam with FedProx, and 7 at most.
`sequential.Update` says the same plainly; its step of Adam with FedProx alone takes 12. Tests
compare both, and count these passes.
"""

import torch
from torch import Tensor

from clustered_fl.engine.workload import LocalSettings
from clustered_fl.models.numerics import NUMERICS

__numerics__ = NUMERICS

STRETCH = 1024
"""Squares that are summed in single precision, which is right to 1e-6."""


def norms(rows: Tensor) -> Tensor:
    """Euclidean norms [K, 1] in float64 of float32 rows [K, P], in one pass.

    A float32 sum of millions of squares is off by 1e-4, and PyTorch's `vector_norm` in float64
    copies its input first. So stretches are summed in float32, and their sums in float64.
    """
    whole = rows.shape[1] // STRETCH
    stretches = rows[:, : whole * STRETCH].unflatten(1, (whole, STRETCH))
    parts = [torch.linalg.vector_norm(stretches, dim=2)]
    parts += [torch.linalg.vector_norm(rows[:, whole * STRETCH :], dim=1, keepdim=True)]
    return torch.linalg.vector_norm(torch.cat(parts, 1), dim=1, keepdim=True, dtype=torch.float64)


class StackedUpdate:
    """One round's optimiser on `models` [K, P], in place.

    It works on the same memory for good, as a captured graph must.

    Args:
        settings: of local training.
        models: what is moved.
        start: the models at the start of the round, to which FedProx pulls.
        gradient: of the mean losses, written by the caller before each step, in which it is spent.
    """

    def __init__(
        self, settings: LocalSettings, models: Tensor, start: Tensor, gradient: Tensor
    ) -> None:
        self._settings, self._models, self._start = settings, models, start
        self._gradient = gradient
        self._velocity = torch.zeros_like(models) if settings.momentum else None
        self._adam = None
        if settings.optimiser == "adam":
            self._adam = torch.optim.Adam([models], settings.lr, fused=True, capturable=True)
            models.grad = gradient
            self._adam.step()  # makes its state, which must have its place before a capture
            self.reset()

    @property
    def state(self) -> list[Tensor]:
        """What is remembered from step to step: momentum, or Adam's moments and count."""
        held = [*self._adam.state[self._models].values()] if self._adam else []
        return held if self._velocity is None else [*held, self._velocity]

    def reset(self) -> None:
        """Forget all steps."""
        for each in self.state:
            each.zero_()

    def step(self, active: Tensor) -> None:
        """One step; models where `active`, bool [K, 1], is False stay as they are.

        Their gradients must be 0, for 0 times what is not a number is not a number.
        """
        settings, gradient = self._settings, self._gradient
        if settings.proximal:
            pull = active * settings.proximal
            gradient.addcmul_(self._models, pull).addcmul_(self._start, pull, value=-1)
        if settings.clip is not None:
            gradient.mul_((settings.clip / (norms(gradient) + 1e-12)).clamp(max=1.0).float())
        if self._adam:
            # Adam's step is in proportion to the first moment, which is now 0 for idle clients.
            self._adam.state[self._models]["exp_avg"].mul_(active)
            self._adam.step()
            return
        if self._velocity is not None:
            torch.add(gradient, self._velocity, alpha=settings.momentum, out=self._velocity)
            gradient = self._velocity
        self._models.addcmul_(gradient, active * -settings.lr)
