"""The optimiser step of all clients of a stack, in few passes over their parameters.

Models are a matrix [K, P]. A pass is one operation that reads or writes a matrix of that size; on a
GPU the passes determine the time of a step of a large network. Besides the gradient's passes:

    passes  for
    1       writing the gradient (`Objective.gradients`)
    1       the step of SGD
    1       momentum
    2       FedProx
    2       clipping: norm and scaling of the gradient
    2       Adam in place of the step of SGD

Plain SGD takes 2 passes, with momentum 3, Adam with FedProx 5, and no combination more than 7.
`sequential.Update` is the plain version. Tests compare the results of both and count these passes.
"""

import torch
from torch import Tensor

from clustered_fl.engine.workload import LocalSettings
from clustered_fl.models.numerics import NUMERICS

__numerics__ = NUMERICS

STRETCH = 1024
"""Number of squares summed in single precision, with a relative error of 1e-6."""


def norms(rows: Tensor) -> Tensor:
    """Euclidean norms [K, 1] in float64 of float32 rows [K, P], in one pass.

    A float32 sum of millions of squares has an error of 1e-4, and PyTorch's `vector_norm` in
    float64 first copies its input. So stretches are summed in float32, and their sums in float64.
    """
    whole = rows.shape[1] // STRETCH
    stretches = rows[:, : whole * STRETCH].unflatten(1, (whole, STRETCH))
    parts = [torch.linalg.vector_norm(stretches, dim=2)]
    parts += [torch.linalg.vector_norm(rows[:, whole * STRETCH :], dim=1, keepdim=True)]
    return torch.linalg.vector_norm(torch.cat(parts, 1), dim=1, keepdim=True, dtype=torch.float64)


class StackedUpdate:
    """The optimiser of one round after another on `models` [K, P], in place.

    Its memory never moves, as a captured graph requires.

    Args:
        settings: of local training.
        models: the parameters to update.
        start: the models at the start of the round, for FedProx.
        gradient: of the mean losses; the caller writes it before each step, which overwrites it.
    """

    def __init__(
        self, settings: LocalSettings, models: Tensor, start: Tensor, gradient: Tensor
    ) -> None:
        self._settings, self._models, self._start = settings, models, start
        self._gradient = gradient
        self._velocity = torch.zeros_like(models) if settings.momentum else None
        self._rate = torch.zeros((), device=models.device)
        self._adam = None
        if settings.optimiser == "adam":
            self._adam = torch.optim.Adam([models], settings.lr, fused=True, capturable=True)
            models.grad = gradient
            self._adam.step()  # allocates its state, which must exist before a capture
        self.reset(0)

    @property
    def state(self) -> list[Tensor]:
        """State between steps: momentum, or Adam's moments and step count."""
        held = [*self._adam.state[self._models].values()] if self._adam else []
        return held if self._velocity is None else [*held, self._velocity]

    def reset(self, round_: int) -> None:
        """Set the state to that before the first step of a round."""
        self._rate.fill_(self._settings.rate(round_))
        for each in self.state:
            each.zero_()

    def step(self, active: Tensor) -> None:
        """One step; models where `active`, bool [K, 1], is False stay as they are.

        Their gradients must be 0, because 0 times NaN is NaN.
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
        self._models.addcmul_(gradient, active * self._rate, value=-1)
