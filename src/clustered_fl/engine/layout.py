"""Where everything of a network lies in the flat arrays that `compiled_kernels` works on."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy import ndarray
from torch import nn

from clustered_fl.engine.dense_kernels import filled, stride
from clustered_fl.models.kernels import MARGIN, TAPS, even

LAYER = np.dtype(
    [
        (name, np.int64)
        for name in (
            "inputs",  # channels or units
            "outputs",
            "side",  # of the input image; 0 says that the layer is dense
            "weight",  # where each begins in the parameters
            "bias",
            "input",  # where each begins in the activations and in their gradients
            "z",  # a convolution before ReLU and pooling
            "output",
        )
    ]
)


class PlainNetwork(Protocol):
    """Layers of `models.kernels`, possibly none, then dense layers with ReLU and dropout between.

    A protocol, so that a run's code does not hang on networks that it does not train.

    Attributes:
        plain: True; says that nothing else happens between input and output.
        dropout: probability of dropping a hidden unit of a dense layer.
    """

    plain: bool
    convolutions: Sequence[nn.Conv2d]
    layers: Sequence[nn.Linear]
    dropout: float


class Buffers(NamedTuple):
    """Flat float32 arrays of one worker, each beginning at a multiple of 64 bytes.

    Attributes:
        parameters, velocity, start: the model, its momentum, and where it began.
        values, slopes: activations of one batch and the gradients of the loss by them.
        scratch: for one layer's weight gradient or flipped kernels.
    """

    parameters: ndarray
    velocity: ndarray
    start: ndarray
    values: ndarray
    slopes: ndarray
    scratch: ndarray


class _Places:
    """Hands out places in a flat buffer, each beginning at a multiple of `LANES`."""

    def __init__(self) -> None:
        self.size = 0

    def take(self, numbers: int) -> int:
        """Where the next `numbers` numbers begin."""
        first, self.size = self.size, self.size + stride(numbers)
        return first


@dataclass(frozen=True)
class Plan:
    """Where everything of a network lies in the buffers.

    Attributes:
        layers: of dtype `LAYER`.
        parameters, activations, scratch: sizes of the buffers.
    """

    layers: np.ndarray
    parameters: int
    activations: int
    scratch: int

    def views(self, buffer: np.ndarray) -> Iterator[np.ndarray]:
        """Weight and bias of each layer, in PyTorch's order and shapes, as parts of `buffer`."""
        for layer in self.layers:
            size = layer.outputs * layer.inputs
            if layer.side:
                shape = (layer.outputs, layer.inputs, TAPS, TAPS)
                yield buffer[layer.weight :][: size * TAPS * TAPS].reshape(shape)
            else:
                width = stride(layer.inputs)
                rows = buffer[layer.weight :][: layer.outputs * width].reshape(-1, width)
                yield rows[:, : layer.inputs]
            yield buffer[layer.bias :][: layer.outputs]


def plan(network: PlainNetwork, side: int, batch: int) -> Plan:
    """Lay a network out.

    Args:
        side: height and width of its images.
        batch: the largest batch.
    """
    parameters, activations = _Places(), _Places()
    batch = filled(batch)
    layers, sizes, place = [], [], 0
    for layer in network.convolutions:
        outputs, inputs, rows = layer.out_channels, layer.in_channels, side - TAPS + 1
        place = place if layers else activations.take(even(inputs) * side**2 * batch)
        weight, bias = parameters.take(layer.weight.numel()), parameters.take(outputs)
        z = activations.take(outputs * rows * (rows + 2 * MARGIN) * batch)
        output = activations.take(outputs * (rows // 2) ** 2 * batch)
        layers.append((inputs, outputs, side, weight, bias, place, z, output))
        sizes.append(even(inputs) * outputs * TAPS**2)
        place, side = output, rows // 2
    for n, layer in enumerate(network.layers):
        outputs, inputs = layer.out_features, layer.in_features
        place = place if n else activations.take(batch * stride(inputs))
        weight = parameters.take(even(outputs) * stride(inputs))
        bias, output = parameters.take(even(outputs)), activations.take(batch * stride(outputs))
        layers.append((inputs, outputs, 0, weight, bias, place, 0, output))
        sizes.append(max(2 * stride(inputs), outputs))
        place = output
    table = np.array(layers, dtype=LAYER).view(np.recarray)
    return Plan(table, parameters.size, activations.size, max(sizes))
