"""Where everything of a network lies in the flat arrays that `compiled_kernels` works on."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

import numpy as np
from numpy import ndarray
from torch import nn

from clustered_fl.engine.convolution_kernels import MARGIN, TAPS, pitch
from clustered_fl.engine.dense_kernels import Weights, filled, grouped, stride
from clustered_fl.models.numerics import NUMERICS

__numerics__ = NUMERICS

FIELDS = ("inputs", "outputs", "side", "padding", "weight", "bias", "input", "z", "output")
LAYER = np.dtype([(name, np.int64) for name in FIELDS])
"""A layer: its channels or units; the side of its input image, 0 for a dense layer, and the pixels
of 0 around it; where weight and bias begin in the parameters; where the input, a convolution before
ReLU and pooling ("z") and the output begin in the activations and in their gradients."""


class Buffers(NamedTuple):
    """Flat float32 arrays of one worker, each beginning at a multiple of 64 bytes.

    Attributes:
        weights: the model, its momentum, and where it began.
        values, slopes: activations of one batch and the gradients of the loss by them.
        scratch: for one layer's weight gradient.
    """

    weights: Weights
    values: ndarray
    slopes: ndarray
    scratch: ndarray


class _Places:
    """Hands out places in a flat buffer, each beginning at a multiple of `LANES`."""

    size = 0

    def take(self, numbers: int) -> int:
        """Where the next `numbers` numbers begin."""
        first, self.size = self.size, self.size + stride(numbers)
        return first


@dataclass(frozen=True)
class Plan:
    """Where everything of a network lies: layers of dtype `LAYER`, and the sizes of the buffers."""

    layers: ndarray
    parameters: int
    activations: int
    scratch: int

    def views(self, buffer: ndarray) -> Iterator[ndarray]:
        """Weight and bias of each layer, in PyTorch's order and shapes, as parts of `buffer`."""
        for layer in self.layers:
            if layer.side:
                shape = (layer.outputs, layer.inputs, TAPS, TAPS)
                yield buffer[layer.weight :][: prod(shape)].reshape(shape)
            else:
                width = stride(layer.inputs)
                rows = buffer[layer.weight :][: layer.outputs * width].reshape(-1, width)
                yield rows[:, : layer.inputs]
            yield buffer[layer.bias :][: layer.outputs]


def plan(network: nn.Module, side: int, batch: int) -> Plan:
    """Lay out a network for images [side, side] in batches of at most `batch`.

    The network is a `ConvNet`: `convolutions` of 5 x 5 with ReLU and pooling, possibly none, and
    then dense `layers` with ReLU and `dropout` between.
    """
    parameters, activations = _Places(), _Places()
    batch = filled(batch)
    layers, sizes, place = [], [], 0
    for n, layer in enumerate(network.convolutions):
        outputs, inputs, padding = layer.out_channels, layer.in_channels, layer.padding[0]
        place = place if n else activations.take(inputs * side * pitch(side, padding, batch))
        weight, bias = parameters.take(layer.weight.numel()), parameters.take(outputs)
        side_ = side + 2 * padding - MARGIN
        z = activations.take(outputs * side_ * pitch(side_, MARGIN - padding, batch))
        output = activations.take(outputs * side_ // 2 * pitch(side_ // 2, padding, batch))
        layers.append((inputs, outputs, side, padding, weight, bias, place, z, output))
        sizes.append(layer.weight.numel())
        place, side = output, side_ // 2
    for n, layer in enumerate(network.layers):
        outputs, inputs = layer.out_features, layer.in_features
        place = place if n else activations.take(batch * stride(inputs))
        weight = parameters.take(grouped(outputs) * stride(inputs))
        bias, output = parameters.take(grouped(outputs)), activations.take(batch * stride(outputs))
        layers.append((inputs, outputs, 0, 0, weight, bias, place, 0, output))
        sizes.append(outputs)
        place = output
    table = np.array(layers, dtype=LAYER).view(np.recarray)
    return Plan(table, parameters.size, activations.size, stride(max(sizes)))
