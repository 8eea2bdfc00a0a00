"""Faster layers and networks that compute the same as those of a network's definition, to rounding.

REPA's supervised autoencoder spends most of a step in its decoder. Three patterns are replaced:

    enlarging, transposed convolution   `Enlarging`, which convolves the small image
    ReLU, max-pooling                   the reverse, because they commute and ReLU on a quarter of
                                        the entries is cheaper
    codes as images                     the same with channels last, where convolutions are faster

Parameters stay the same objects, in the same order.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from clustered_fl.models.autoencoder import SupervisedAutoencoder
from clustered_fl.models.cnn import ConvNet
from clustered_fl.models.numerics import NUMERICS

__numerics__ = NUMERICS


class Enlarging(nn.Module):
    """A transposed convolution of an image whose pixels were first repeated 2 x 2.

    Pixels of the large image are equal in fours, so the taps of a kernel that see the same small
    pixel can be added up. A kernel of 5 x 5 becomes four of 3 x 3, one for each place in a square
    of 2 x 2 pixels: 9 instead of 25 products per pixel.
    """

    def __init__(self, convolution: nn.ConvTranspose2d) -> None:
        super().__init__()
        self.convolution, size = convolution, convolution.kernel_size[0]
        # Tap d of a kernel moves a pixel d places on: pixel 2 y + p of the result sees pixel
        # (2 y + p - d) // 2 of the small image.
        self.reach = size // 2
        seen = [[(place - tap) // 2 + self.reach for tap in range(size)] for place in (0, 1)]
        self.sums = torch.eye(self.reach + 1)[torch.tensor(seen)].to(convolution.weight)

    def forward(self, images: Tensor) -> Tensor:
        """Map images [batch, channels, side, side] to images of twice the side and a margin."""
        kernels = torch.einsum(
            "iode,pda,qeb->opqiab", self.convolution.weight, self.sums, self.sums
        )
        bias = self.convolution.bias.repeat_interleave(4)
        places = functional.conv2d(images, kernels.flatten(0, 2), bias, padding=self.reach)
        return functional.pixel_shuffle(places, 2)


class _ChannelsLast(nn.Module):
    def forward(self, images: Tensor) -> Tensor:
        return images.contiguous(memory_format=torch.channels_last)


def accelerate(network: nn.Module) -> None:
    """Replace layers of REPA's network, in place; other networks have no such patterns."""
    if isinstance(network, SupervisedAutoencoder):
        one, relu, pool, two, relu_, pool_, *rest = network.encoder
        network.encoder = nn.Sequential(one, pool, relu, two, pool_, relu_, *rest)
        *dense, _, three, relu, _, four = network.decoder
        enlarging = Enlarging(three), relu, Enlarging(four)
        network.decoder = nn.Sequential(*dense, _ChannelsLast(), *enlarging)


def classifying(network: SupervisedAutoencoder, side: int) -> ConvNet:
    """Encoder and classifier of REPA's network for images [side, side], without its decoder.

    It has other random parameters. Their order is the same, so a flat model [P] of `network` begins
    with one of these.
    """
    parts = [*network.encoder, *network.classifier]
    convolutions = [part for part in parts if isinstance(part, nn.Conv2d)]
    filters = tuple(part.out_channels for part in convolutions)
    *hidden, classes = (part.out_features for part in parts if isinstance(part, nn.Linear))
    return ConvNet(convolutions[0].in_channels, side, filters, tuple(hidden), classes)
