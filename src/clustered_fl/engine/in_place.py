"""As `sequential`, but a dense layer takes its step inside the backward pass.

Once the weights leave the cache (26 MB in LEAF's network), writing, clearing and reading their
gradient costs more than computing it. Here it is added to the weights, or to the momentum, at once;
with few samples the gradient of the layer's input is made in the same pass over the weights.
"""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from clustered_fl.engine.dense_kernels import descend, filled
from clustered_fl.engine.sequential import Descend, Sequential
from clustered_fl.engine.workers import Worker
from clustered_fl.engine.workload import Workload
from clustered_fl.models.numerics import NUMERICS

__numerics__ = NUMERICS

FEW = 20
"""With more samples a BLAS is faster than our loops."""


class _Dense(torch.autograd.Function):
    """A dense layer whose backward pass is also its step of SGD."""

    @staticmethod
    def forward(ctx, x: Tensor, weight: Tensor, bias: Tensor, step: Callable) -> Tensor:  # noqa: ANN001
        ctx.save_for_backward(x, weight)
        ctx.step = step
        return functional.linear(x, weight, bias)

    @staticmethod
    def backward(ctx, slope: Tensor) -> tuple[Tensor | None, None, None, None]:  # noqa: ANN001
        x, _ = ctx.saved_tensors
        dx = ctx.step(x.flatten(0, -2), slope.flatten(0, -2), ctx.needs_input_grad[0])
        return None if dx is None else dx.view_as(x), None, None, None


class _SteppingWorker(Worker):
    """A worker whose dense layers step by themselves, and whose other layers are told to."""

    def __init__(self, workload: Workload) -> None:
        super().__init__(workload)
        self._settings, self._terms = workload.settings, 1
        dense = [m for m in self.network.modules() if isinstance(m, nn.Linear)]
        stepping = {p for layer in dense for p in layer.parameters()}
        self._others = [p for p in self.network.parameters() if p not in stepping]
        stateful = self.network.parameters() if self._settings.momentum else ()
        self._velocity = {p: torch.zeros_like(p) for p in stateful}
        for layer in dense:
            layer.forward = self._forward(layer)

    def load(self, model: Tensor, training: bool = False) -> nn.Module:
        """Take on the parameters `model` [P], without momentum."""
        for velocity in self._velocity.values():
            velocity.zero_()
        return super().load(model, training)

    def descend(self, rows: np.ndarray, client: int) -> tuple[Tensor, int]:
        """One step on the mean loss over `rows`; returns the summed loss and its terms."""
        for parameter in self._others:
            parameter.grad.zero_()
        self._terms = self.workload.task.terms(self.workload.targets(rows, client))
        found = self.backward(rows, client)
        for parameter in self._others:
            self._add(parameter, parameter.grad)
        return found

    def _forward(self, layer: nn.Linear) -> Callable:
        def step(x: Tensor, slope: Tensor, wanted: bool) -> Tensor | None:
            self._add(layer.bias, slope.sum(0))
            if len(x) <= FEW and x.device.type == "cpu" and layer.out_features % 2 == 0:
                return self._descend(layer.weight, x, slope, wanted)
            dx = slope @ layer.weight if wanted else None
            self._add_product(layer.weight, slope.t(), x)
            return dx

        return lambda x: _Dense.apply(x, layer.weight, layer.bias, step)

    def _descend(self, weight: Tensor, x: Tensor, slope: Tensor, wanted: bool) -> Tensor | None:
        """The step of the weights; returns the gradient of the input if wanted."""
        missing = (0, 0, 0, filled(len(x)) - len(x))
        x_, slope_ = (functional.pad(part, missing).detach().numpy() for part in (x, slope))
        dx = torch.empty(len(x_) if wanted else 0, x.shape[1])
        velocity = self._velocity.get(weight, weight).detach().numpy()
        numbers = map(np.float32, (1 / self._terms, self._settings.lr, self._settings.momentum))
        descend(x_, slope_, weight.detach().numpy(), velocity, *numbers, dx.numpy())
        return dx[: len(x)] if wanted else None

    def _add(self, parameter: Tensor, gradient: Tensor) -> None:
        """Step along a gradient summed over the batch."""
        settings, scale = self._settings, 1 / self._terms
        if settings.momentum:
            velocity = self._velocity[parameter]
            gradient = velocity.mul_(settings.momentum).add_(gradient, alpha=scale)
            scale = 1
        parameter.data.add_(gradient, alpha=-settings.lr * scale)

    def _add_product(self, parameter: Tensor, a: Tensor, b: Tensor) -> None:
        """Step along the gradient a @ b, which is never stored."""
        settings, scale = self._settings, 1 / self._terms
        if settings.momentum:
            velocity = self._velocity[parameter]
            velocity.addmm_(a, b, beta=settings.momentum, alpha=scale)
            parameter.data.add_(velocity, alpha=-settings.lr)
        else:
            parameter.data.addmm_(a, b, alpha=-settings.lr * scale)


class InPlace(Sequential):
    """One client after the other on each thread, dense layers stepping in the backward pass."""

    @staticmethod
    def supports(workload: Workload) -> bool:
        """SGD of all layers; FedProx and clipping need the whole gradient."""
        settings = workload.settings
        plain = not settings.proximal and settings.clip is None
        return plain and settings.optimiser == "sgd" and settings.layers == "all"

    def _begin(self, start: Tensor) -> tuple[Worker, Descend]:
        worker: _SteppingWorker = self.workers.own(_SteppingWorker)
        worker.load(start, training=True)
        return worker, worker.descend
