"""Networks for images: fully connected and convolutional.

The papers only say "multilayer convolutional" and "five-layer convolutional"; each function states
its choice and the reason. All inputs are float32 [batch, channels, height, width].
"""

from itertools import pairwise
from typing import Annotated

from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from clustered_fl.models.dropout import Dropout

POOLED = 2
"""The first so many convolutions of a `ThreeConvNet` are followed by 2 x 2 max-pooling."""


class ConvNet(nn.Module):
    """Any number of 5 x 5 convolutions with ReLU and 2 x 2 max-pooling, then dense layers.

    Args:
        filters: outputs of the convolutions.
        hidden: widths of the hidden fully connected layers, if any, with ReLU between.
        dropout: probability that a hidden unit is set to 0 in training.
        padding: pixels of 0 around the input of each convolution.
    """

    def __init__(
        self,
        channels: int,
        side: int,
        filters: tuple[int, ...],
        hidden: tuple[int, ...],
        classes: int,
        dropout: float = 0.0,
        padding: int = 0,
    ) -> None:
        super().__init__()
        self.dropout = dropout
        pairs = pairwise((channels, *filters))
        self.convolutions = nn.ModuleList(nn.Conv2d(*ab, 5, padding=padding) for ab in pairs)
        for _ in filters:
            side = (side + 2 * padding - 4) // 2
        widths = ((channels, *filters)[-1] * side**2, *hidden, classes)
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(widths))
        self.dropouts = nn.ModuleList(Dropout(dropout, layer) for layer in range(len(hidden)))

    def forward(self, images: Tensor) -> Tensor:
        """Map images [batch, channels, side, side] to class scores [batch, classes]."""
        for convolution in self.convolutions:
            # ReLU and maximum commute, and ReLU on a quarter of the entries is cheaper.
            images = functional.relu(functional.max_pool2d(convolution(images), 2))
        hidden = images.flatten(1)
        for layer, dropout in zip(self.layers, self.dropouts, strict=False):
            hidden = dropout(functional.relu(layer(hidden)))
        return self.layers[-1](hidden)


class ThreeConvNet(nn.Module):
    """3 x 3 convolutions, pooling after the first two, and two fully connected layers.

    Args:
        filters: outputs of the convolutions, each with ReLU.
        hidden: width of the hidden fully connected layer.
    """

    def __init__(
        self, channels: int, side: int, filters: tuple[int, ...], hidden: int, classes: int
    ) -> None:
        super().__init__()
        pairs = pairwise((channels, *filters))
        self.convolutions = nn.ModuleList(nn.Conv2d(a, b, kernel_size=3) for a, b in pairs)
        for number in range(len(filters)):
            side = (side - 2) // (2 if number < POOLED else 1)
        widths = (filters[-1] * side**2, hidden, classes)
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(widths))

    def forward(self, images: Tensor) -> Tensor:
        """Map images [batch, channels, side, side] to class scores [batch, classes]."""
        for number, convolution in enumerate(self.convolutions):
            images = convolution(images)
            if number < POOLED:
                images = functional.max_pool2d(images, 2)
            images = functional.relu(images)
        first, last = self.layers
        return last(functional.relu(first(images.flatten(1))))


def mlp(
    channels: int, side: int, classes: int, dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0
) -> ConvNet:
    """One hidden layer of 200 units: 159,010 parameters for MNIST.

    FLT's network for MNIST; the code has dropout 0.5, the paper mentions none.

    Args:
        dropout: probability that a hidden unit is set to 0 in training.
    """
    return ConvNet(channels, side, (), (200,), classes, dropout)


def small_conv_net(channels: int, side: int, classes: int) -> ConvNet:
    """6 and 16 filters, one fully connected layer: 5,142 parameters for MNIST.

    The network of the CFL authors' public demonstration with ten outputs; the paper gives no layers
    for its MNIST experiments (Figs 6-8).
    """
    return ConvNet(channels, side, (6, 16), (), classes)


def wide_conv_net(channels: int, side: int, classes: int) -> ConvNet:
    """32 and 32 filters, one hidden layer of 256: 160,362 parameters for MNIST.

    The network of the same authors' earlier simulator: a second interpretation of Figs 6-8.
    """
    return ConvNet(channels, side, (32, 32), (256,), classes)


def leaf_cnn(channels: int, side: int, classes: int) -> ConvNet:
    """32 and 64 filters, images padded to keep their size, one hidden layer of 2,048.

    6,603,710 parameters for FEMNIST: the network of the LEAF benchmark, which FLT uses for FEMNIST
    and EMNIST.
    """
    return ConvNet(channels, side, (32, 64), (2048,), classes, padding=2)


def le_net(channels: int, side: int, classes: int) -> ConvNet:
    """6 and 16 filters, hidden layers 120 and 84: five layers, 62,006 parameters for CIFAR-10.

    Our interpretation of "a five-layer convolutional neural network" (CFL, section V-C); FLT uses
    the same network for CIFAR-10.
    """
    return ConvNet(channels, side, (6, 16), (120, 84), classes)


def three_conv_net(channels: int, side: int, classes: int) -> ThreeConvNet:
    """32, 64 and 64 filters, one hidden layer of 64: 122,570 parameters for CIFAR-10.

    The other interpretation of "five-layer convolutional" (CFL, section V-C), for runs of your own:
    no published run trains it.
    """
    return ThreeConvNet(channels, side, (32, 64, 64), 64, classes)
