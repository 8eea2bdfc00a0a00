"""A client's epoch as one compiled call without Python between the operations.

With ten samples and a network of a few ten thousand parameters, PyTorch spends more time on calling
operations than inside them. The loops of `compiled_kernels` do the same arithmetic on buffers that
are made once; they release Python's lock, so that threads train clients side by side.
"""

from collections.abc import Iterator
from inspect import getsource

import numpy as np
import torch
from torch import Tensor

from clustered_fl.engine import compiled_kernels, dense_kernels
from clustered_fl.engine.compiled_kernels import Data, Rule, epoch_trainer
from clustered_fl.engine.layout import Buffers, plan
from clustered_fl.engine.sequential import Sequential
from clustered_fl.engine.task import ImageTask
from clustered_fl.engine.workers import Workers
from clustered_fl.engine.workload import LocalSettings, Workload
from clustered_fl.files import digest
from clustered_fl.models import dropout, kernels
from clustered_fl.models.kernels import TAPS
from clustered_fl.models.numerics import NUMERICS

__numerics__ = NUMERICS

train_epoch = epoch_trainer(
    digest([getsource(m) for m in (compiled_kernels, dense_kernels, dropout, kernels)])
)


class _Bench:
    """One thread's buffers."""

    def __init__(self, workload: Workload) -> None:
        task, batch = workload.task, workload.settings.batch_size
        largest = min(batch, max(len(rows) for rows in workload.federation.train))
        self.plan = plan(workload.network, task.x.shape[2], largest)
        sizes = [self.plan.parameters] * 3 + [self.plan.activations] * 2 + [self.plan.scratch]
        # PyTorch's memory begins at a multiple of 64 bytes, NumPy's does not.
        self.buffers = Buffers(*(torch.zeros(size).numpy() for size in sizes))

    def load(self, start: Tensor, settings: LocalSettings) -> None:
        """Begin at a start model [P], without momentum."""
        self.buffers.parameters[:] = 0  # between the rows too, where a divergence leaves NaN
        for place, part in self._parts(start):
            place[:] = part
        if settings.momentum:
            self.buffers.velocity[:] = 0
        if settings.proximal:
            self.buffers.start[:] = self.buffers.parameters

    def moved(self, start: Tensor, out: Tensor) -> None:
        """Write how far the model has moved from `start` to `out`, both [P]."""
        for (place, part), (_, moved) in zip(self._parts(start), self._parts(out), strict=True):
            np.subtract(place, part, out=moved)

    def _parts(self, flat: Tensor) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Each layer's weight and bias in the buffer, and the same part of `flat` [P]."""
        values, first = flat.numpy(), 0
        for place in self.plan.views(self.buffers.parameters):
            yield place, values[first : first + place.size].reshape(place.shape)
            first += place.size


class Compiled(Sequential):
    """One compiled call per client and epoch, on each thread."""

    def __init__(self, workload: Workload, workers: Workers) -> None:
        super().__init__(workload, workers)
        task, settings = workload.task, workload.settings
        scale, shift = 1 / (255 * task.deviation), task.mean / task.deviation
        self._data = Data(task.x.flatten(1).numpy(), np.float32(scale), np.float32(shift))
        numbers = map(np.float32, (settings.lr, settings.momentum, settings.proximal))
        self._rule = Rule(*numbers, workload.network.dropout)

    @staticmethod
    def supports(workload: Workload) -> bool:
        """Images on a CPU, a plain network, SGD of all layers, also with momentum and FedProx."""
        settings, task = workload.settings, workload.task
        if workload.device.type != "cpu" or not isinstance(task, ImageTask):
            return False
        simple = settings.optimiser == "sgd" and settings.clip is None
        plain = simple and settings.layers == "all"
        return plain and getattr(workload.network, "plain", False) and _is_even(workload)

    def _client(self, start: Tensor, client: int, round_: int, out: Tensor) -> float:
        workload, bench = self.workload, self.workers.own(_Bench)
        bench.load(start, workload.settings)
        label_map = workload.federation.label_maps[client]
        for epoch in range(workload.settings.epochs):
            rows = workload.order(client, round_, epoch)
            samples = rows, label_map[workload.task.y[rows].numpy()], workload.settings.batch_size
            how = self._rule, workload.dropout_key(client, round_, epoch)
            loss = train_epoch(bench.plan.layers, bench.buffers, self._data, *samples, *how)
        bench.moved(start, out)
        return loss / len(rows)


def _is_even(workload: Workload) -> bool:
    """Whether rows, columns and outputs of every convolution are, as `conv_relu_pool` wants."""
    side = workload.task.x.shape[2]
    for layer in workload.network.convolutions:
        if side % 2 or layer.out_channels % 2:
            return False
        side = (side - TAPS + 1) // 2
    return True
