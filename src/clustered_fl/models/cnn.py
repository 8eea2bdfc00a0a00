"""Convolutional networks for images.

The papers say "multilayer convolutional" and "five-layer convolutional" and no more; the choices
and their reasons stand in each class. All inputs are float32 [batch, channels, height, width].
"""

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from clustered_fl.models.kernels import conv_relu_pool


class ConvLayer(nn.Conv2d):
    """5 x 5 convolution, ReLU, 2 x 2 max-pooling on [channels, height, width, batch]."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs, kernel_size=5)

    def forward(self, image: Tensor) -> Tensor:
        """Apply the fused layer; see `conv_relu_pool` for the shapes."""
        return conv_relu_pool(image, self.weight, self.bias)


class ConvNet(nn.Module):
    """Two `ConvLayer`s and fully connected layers, ReLU between.

    Args:
        channels: input channels.
        side: input height and width.
        filters: outputs of the two convolutions.
        hidden: widths of the hidden fully connected layers, possibly none.
        classes: number of outputs.
    """

    def __init__(
        self,
        channels: int,
        side: int,
        filters: tuple[int, int],
        hidden: tuple[int, ...],
        classes: int,
    ) -> None:
        super().__init__()
        self.convolutions = nn.ModuleList(
            [ConvLayer(channels, filters[0]), ConvLayer(filters[0], filters[1])]
        )
        remaining = ((side - 4) // 2 - 4) // 2
        widths = (filters[1] * remaining**2, *hidden, classes)
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(widths))

    def forward(self, images: Tensor) -> Tensor:
        """Map images [batch, channels, side, side] to class scores [batch, classes]."""
        features = images.permute(1, 2, 3, 0)
        for convolution in self.convolutions:
            features = convolution(features)
        hidden = features.reshape(-1, features.shape[-1]).t()
        for layer in self.layers[:-1]:
            hidden = functional.relu(layer(hidden))
        return self.layers[-1](hidden)


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


def small_conv_net(channels: int, side: int, classes: int) -> ConvNet:
    """6 and 16 filters, one fully connected layer: 5,142 parameters for MNIST.

    The network of the CFL authors' public demonstration with ten outputs; the paper gives no layers
    for its MNIST experiments (Figs 6-8).
    """
    return ConvNet(channels, side, (6, 16), (), classes)


def wide_conv_net(channels: int, side: int, classes: int) -> ConvNet:
    """32 and 32 filters, one hidden layer of 256: 160,362 parameters for MNIST.

    The network of the same authors' earlier simulator, as a second reading of Figs 6-8.
    """
    return ConvNet(channels, side, (32, 32), (256,), classes)


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
