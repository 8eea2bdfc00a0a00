"""Networks for images: fully connected and convolutional.

The papers say "multilayer convolutional" and "five-layer convolutional" and no more; the choices
and their reasons stand in each class. All inputs are float32 [batch, channels, height, width].
"""

from itertools import pairwise
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from clustered_fl.models.dropout import Dropout
from clustered_fl.models.kernels import conv_relu_pool


class ConvLayer(nn.Conv2d):
    """5 x 5 convolution, ReLU, 2 x 2 max-pooling on [channels, height, width, batch].

    Attributes:
        direct: use the loops of `kernels` on a CPU; torch.func's transforms need PyTorch's own.
    """

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs, kernel_size=5)
        self.direct = True

    def forward(self, image: Tensor) -> Tensor:
        """Apply the fused layer; see `conv_relu_pool` for the shapes."""
        return conv_relu_pool(image, self.weight, self.bias, self.direct)


class ConvNet(nn.Module):
    """A few filters: `ConvLayer`s, possibly none, and fully connected layers, ReLU between.

    Args:
        channels: input channels.
        side: input height and width.
        filters: outputs of the convolutions.
        hidden: widths of the hidden fully connected layers, possibly none.
        classes: number of outputs.
        dropout: probability with which a hidden unit is dropped in training.

    Attributes:
        plain: that this is all there is, which `engine.layout` relies on.
    """

    plain = True

    def __init__(
        self,
        channels: int,
        side: int,
        filters: tuple[int, ...],
        hidden: tuple[int, ...],
        classes: int,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.dropout = dropout
        self.convolutions = nn.ModuleList(
            ConvLayer(a, b) for a, b in pairwise((channels, *filters))
        )
        for _ in filters:
            side = (side - 4) // 2
        widths = ((channels, *filters)[-1] * side**2, *hidden, classes)
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(widths))
        self.dropouts = nn.ModuleList(Dropout(dropout, layer) for layer in range(len(hidden)))

    def forward(self, images: Tensor) -> Tensor:
        """Map images [batch, channels, side, side] to class scores [batch, classes]."""
        features = images.permute(1, 2, 3, 0)
        for convolution in self.convolutions:
            features = convolution(features)
        hidden = features.reshape(-1, features.shape[-1]).t()
        for layer, dropout in zip(self.layers, self.dropouts, strict=False):
            hidden = dropout(functional.relu(layer(hidden)))
        return self.layers[-1](hidden)


class WideConvNet(nn.Module):
    """Many filters, which PyTorch's convolutions are made for; otherwise as `ConvNet`.

    Args:
        channels: input channels.
        side: input height and width.
        filters: outputs of the 5 x 5 convolutions, each with ReLU and 2 x 2 max-pooling.
        padding: pixels of 0 around the input of each convolution.
        hidden: width of the hidden fully connected layer.
        classes: number of outputs.
    """

    def __init__(
        self,
        channels: int,
        side: int,
        filters: tuple[int, ...],
        padding: int,
        hidden: int,
        classes: int,
    ) -> None:
        super().__init__()
        self.convolutions = nn.ModuleList(
            nn.Conv2d(a, b, 5, padding=padding) for a, b in pairwise((channels, *filters))
        )
        for _ in filters:
            side = (side + 2 * padding - 4) // 2
        self.layers = nn.ModuleList(
            [nn.Linear(filters[-1] * side**2, hidden), nn.Linear(hidden, classes)]
        )

    def forward(self, images: Tensor) -> Tensor:
        """Map images [batch, channels, side, side] to class scores [batch, classes]."""
        for convolution in self.convolutions:
            # ReLU and maximum commute; on a quarter of the entries ReLU costs less.
            images = functional.relu(functional.max_pool2d(convolution(images), 2))
        first, last = self.layers
        return last(functional.relu(first(images.flatten(1))))


class ThreeConvNet(nn.Module):
    """Three 3 x 3 convolutions and two fully connected layers; see `three_conv_net`."""

    def __init__(self, channels: int, side: int, classes: int) -> None:
        super().__init__()
        self.convolutions = nn.ModuleList(
            [nn.Conv2d(a, b, 3) for a, b in ((channels, 32), (32, 64), (64, 64))]
        )
        remaining = ((side - 2) // 2 - 2) // 2 - 2
        self.layers = nn.ModuleList([nn.Linear(64 * remaining**2, 64), nn.Linear(64, classes)])

    def forward(self, images: Tensor) -> Tensor:
        """Map images [batch, channels, side, side] to class scores [batch, classes]."""
        first, second, third = self.convolutions
        features = functional.max_pool2d(functional.relu(first(images)), 2)
        features = functional.max_pool2d(functional.relu(second(features)), 2)
        features = functional.relu(third(features))
        return self.layers[1](functional.relu(self.layers[0](torch.flatten(features, 1))))


def mlp(
    channels: int, side: int, classes: int, dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0
) -> ConvNet:
    """One hidden layer of 200 units: 159,010 parameters for MNIST.

    FLT's network for MNIST, which drops half of the hidden units in its code and none in its text.
    """
    return ConvNet(channels, side, (), (200,), classes, dropout)


def small_conv_net(channels: int, side: int, classes: int) -> ConvNet:
    """6 and 16 filters, one fully connected layer: 5,142 parameters for MNIST.

    The network of the CFL authors' public demonstration with ten outputs; the paper gives no layers
    for its MNIST experiments (Figs 6-8).
    """
    return ConvNet(channels, side, (6, 16), (), classes)


def wide_conv_net(channels: int, side: int, classes: int) -> WideConvNet:
    """32 and 32 filters, one hidden layer of 256: 160,362 parameters for MNIST.

    The network of the same authors' earlier simulator, as a second reading of Figs 6-8.
    """
    return WideConvNet(channels, side, (32, 32), 0, 256, classes)


def leaf_cnn(channels: int, side: int, classes: int) -> WideConvNet:
    """32 and 64 filters, images padded to keep their size, one hidden layer of 2,048.

    6,603,710 parameters for FEMNIST: the network of the LEAF benchmark, which FLT uses for FEMNIST
    and EMNIST.
    """
    return WideConvNet(channels, side, (32, 64), 2, 2048, classes)


def le_net(channels: int, side: int, classes: int) -> ConvNet:
    """6 and 16 filters, hidden layers 120 and 84: five layers, 62,006 parameters for CIFAR-10.

    Our reading of "a five-layer convolutional neural network" (CFL, section V-C); FLT uses the same
    network for CIFAR-10.
    """
    return ConvNet(channels, side, (6, 16), (120, 84), classes)


def three_conv_net(channels: int, side: int, classes: int) -> ThreeConvNet:
    """32, 64 and 64 filters, one hidden layer of 64: 122,570 parameters for CIFAR-10.

    The other reading of "five-layer convolutional", kept to see whether the choice of `le_net`
    matters (CFL, section V-C).
    """
    return ThreeConvNet(channels, side, classes)
