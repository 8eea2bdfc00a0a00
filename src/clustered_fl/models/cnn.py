"""Networks for images: fully connected and convolutional.

The papers say "multilayer convolutional" and "five-layer convolutional" and no more; each function
gives its choice and the reason. All inputs are float32 [batch, channels, height, width].
"""

from itertools import pairwise
from typing import Annotated

from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from clustered_fl.models.dropout import Dropout
from clustered_fl.models.kernels import conv_relu_pool

POOLED = 2
"""Convolutions of a `WideConvNet` that 2 x 2 max-pooling follows; later ones have none."""


class ConvLayer(nn.Conv2d):
    """5 x 5 convolution, ReLU, 2 x 2 max-pooling on [channels, height, width, batch].

    `direct` uses the loops of `kernels` on a CPU; torch.func's transforms need PyTorch's own.
    """

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs, kernel_size=5)
        self.direct = True

    def forward(self, image: Tensor) -> Tensor:
        """Apply the fused layer; see `conv_relu_pool` for the shapes."""
        return conv_relu_pool(image, self.weight, self.bias, self.direct)


class ConvNet(nn.Module):
    """A few filters: `ConvLayer`s, possibly none, and fully connected layers, ReLU between.

    `plain` says that this is all there is, which `engine.layout` relies on.

    Args:
        filters: outputs of the convolutions.
        hidden: widths of the hidden fully connected layers, possibly none.
        dropout: probability that a hidden unit is set to 0 in training.
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
        pairs = pairwise((channels, *filters))
        self.convolutions = nn.ModuleList(ConvLayer(a, b) for a, b in pairs)
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
        filters: outputs of the convolutions, each with ReLU.
        hidden: width of the hidden fully connected layer.
        kernel: height and width of the convolutions' kernels.
        padding: pixels of 0 around the input of each convolution.
    """

    def __init__(
        self,
        channels: int,
        side: int,
        filters: tuple[int, ...],
        hidden: int,
        classes: int,
        kernel: int = 5,
        padding: int = 0,
    ) -> None:
        super().__init__()
        pairs = pairwise((channels, *filters))
        self.convolutions = nn.ModuleList(nn.Conv2d(*ab, kernel, padding=padding) for ab in pairs)
        for number in range(len(filters)):
            side = (side + 2 * padding - kernel + 1) // (2 if number < POOLED else 1)
        widths = (filters[-1] * side**2, hidden, classes)
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(widths))

    def forward(self, images: Tensor) -> Tensor:
        """Map images [batch, channels, side, side] to class scores [batch, classes]."""
        for number, convolution in enumerate(self.convolutions):
            images = convolution(images)
            if number < POOLED:
                # ReLU and maximum commute; on a quarter of the entries ReLU costs less.
                images = functional.max_pool2d(images, 2)
            images = functional.relu(images)
        first, last = self.layers
        return last(functional.relu(first(images.flatten(1))))


def mlp(
    channels: int, side: int, classes: int, dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0
) -> ConvNet:
    """One hidden layer of 200 units: 159,010 parameters for MNIST.

    FLT's network for MNIST, which drops half of the hidden units in its code and none in its text.

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


def wide_conv_net(channels: int, side: int, classes: int) -> WideConvNet:
    """32 and 32 filters, one hidden layer of 256: 160,362 parameters for MNIST.

    The network of the same authors' earlier simulator, as a second reading of Figs 6-8.
    """
    return WideConvNet(channels, side, (32, 32), 256, classes)


def leaf_cnn(channels: int, side: int, classes: int) -> WideConvNet:
    """32 and 64 filters, images padded to keep their size, one hidden layer of 2,048.

    6,603,710 parameters for FEMNIST: the network of the LEAF benchmark, which FLT uses for FEMNIST
    and EMNIST.
    """
    return WideConvNet(channels, side, (32, 64), 2048, classes, padding=2)


def le_net(channels: int, side: int, classes: int) -> ConvNet:
    """6 and 16 filters, hidden layers 120 and 84: five layers, 62,006 parameters for CIFAR-10.

    Our reading of "a five-layer convolutional neural network" (CFL, section V-C); FLT uses the same
    network for CIFAR-10.
    """
    return ConvNet(channels, side, (6, 16), (120, 84), classes)


def three_conv_net(channels: int, side: int, classes: int) -> WideConvNet:
    """32, 64 and 64 filters, one hidden layer of 64: 122,570 parameters for CIFAR-10.

    The other reading of "five-layer convolutional", kept to see whether the choice of `le_net`
    matters (CFL, section V-C).
    """
    return WideConvNet(channels, side, (32, 64, 64), 64, classes, kernel=3)
