"""Autoencoders: FLT's encoders, and REPA's network, which is a classifier, too.

Images are float32 [batch, channels, side, side]; FLT's encoders expect values in 0..1.
"""

from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor, nn

from clustered_fl.errors import InputError
from clustered_fl.options import call

Width = Annotated[int, Field(ge=1)]


class Autoencoder(nn.Module):
    """An encoder of images to codes [batch, e], and a decoder of codes to images."""

    def __init__(self, encoder: nn.Module, decoder: nn.Module) -> None:
        super().__init__()
        self.encoder, self.decoder = encoder, decoder

    def forward(self, images: Tensor) -> Tensor:
        """Reconstruct images."""
        return self.decoder(self.encoder(images))


class _Residual(nn.Module):
    """A residual block: a narrow 3 x 3 convolution and a 1 x 1 convolution."""

    def __init__(self, width: int, narrow: int) -> None:
        super().__init__()
        into = nn.Conv2d(width, narrow, 3, padding=1, bias=False)
        back = nn.Conv2d(narrow, width, 1, bias=False)
        self.inner = nn.Sequential(nn.ReLU(), into, nn.ReLU(), back)

    def forward(self, features: Tensor) -> Tensor:
        return features + self.inner(features)


def conv_autoencoder(channels: int, side: int, code: Width = 128) -> Autoencoder:
    """FLT's ConvAE: 3 x 3 convolutions of 16 and 4 filters, one fully connected layer.

    The encoder has 25,956 parameters for MNIST (the number in FLT's Table VI).

    Args:
        code: number of entries of a code.
    Raises: InputError if the side is not a multiple of four.
    """
    small = _quarter(side)
    encoder = nn.Sequential(
        *(nn.Conv2d(channels, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(16, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(4 * small**2, code)),
    )
    decoder = nn.Sequential(
        *(nn.Linear(code, 4 * small**2), nn.Unflatten(1, (4, small, small))),
        *(nn.ConvTranspose2d(4, 16, 2, stride=2), nn.ReLU()),
        *(nn.ConvTranspose2d(16, channels, 2, stride=2), nn.Sigmoid()),
    )
    # With channels last, steps take two thirds of the time.
    return Autoencoder(encoder, decoder).to(memory_format=torch.channels_last)


def residual_autoencoder(
    channels: int, side: int, code: Width = 128, width: Width = 128
) -> Autoencoder:
    """Five convolutions, two residual blocks and batch normalisation, one fully connected layer.

    FLT says "two convolutional layers followed by a single fully connected layer" for grey images
    and for CIFAR. Its code has this for CIFAR (`extractor_models.py`, `width` 128): the encoder has
    439,064 parameters for CIFAR-10, seven times as many as the clients' network.

    Args:
        code: width of the code of an image.
        width: number of filters of the widest convolutions, a multiple of 16.
    Raises: InputError if the side is not a multiple of four, or the width not one of 16.
    """
    small, half, few = _quarter(side), width // 2, width // 16
    if width % 16:
        raise InputError(f"the residual autoencoder needs a width that 16 divides, not {width}")
    encoder = nn.Sequential(
        *(nn.Conv2d(channels, half, 4, 2, 1), nn.ReLU(), nn.BatchNorm2d(half)),
        *(nn.Conv2d(half, width, 4, 2, 1), nn.ReLU(), nn.BatchNorm2d(width)),
        *(nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width), *_residuals(width)),
        *(nn.Conv2d(width, half, 1), nn.ReLU(), nn.BatchNorm2d(half)),
        *(nn.Conv2d(half, few, 1), nn.ReLU(), nn.BatchNorm2d(few)),
        *(nn.Flatten(), nn.Linear(few * small**2, code)),
    )
    decoder = nn.Sequential(
        *(nn.Linear(code, few * small**2), nn.Unflatten(1, (few, small, small))),
        *(nn.ConvTranspose2d(few, half, 1), nn.ReLU()),
        *(nn.ConvTranspose2d(half, width, 1), nn.ReLU(), *_residuals(width)),
        *(nn.Conv2d(width, width, 3, padding=1), nn.ReLU()),
        *(nn.ConvTranspose2d(width, half, 4, 2, 1), nn.ReLU()),
        nn.ConvTranspose2d(half, channels, 4, 2, 1),
    )
    return Autoencoder(encoder, decoder)


def _residuals(width: int) -> tuple[nn.Module, ...]:
    return _Residual(width, width // 4), _Residual(width, width // 4), nn.ReLU()


def _quarter(side: int) -> int:
    if side % 4:
        raise InputError(f"the autoencoder needs a side that 4 divides, not {side} pixels")
    return side // 4


AUTOENCODERS = {"conv_autoencoder": conv_autoencoder, "residual_autoencoder": residual_autoencoder}


def build_autoencoder(name: str, image_shape: tuple[int, ...], /, **options: int) -> Autoencoder:
    """Create autoencoder `name` with random parameters from torch's global generator.

    Args:
        image_shape: (channels, height, width).
        options: from the ledger, such as `code`, the number e of entries of a code.
    Raises: InputError if it is unknown, has no such setting, or does not fit the images.
    """
    if name not in AUTOENCODERS:
        known = ", ".join(AUTOENCODERS)
        raise InputError(f"unknown autoencoder {name!r}; allowed are {known}")
    if len(image_shape) != 3 or image_shape[1] != image_shape[2]:
        raise InputError(f"autoencoders need square images, not samples of shape {image_shape}")
    given = {"channels": image_shape[0], "side": image_shape[1]}
    return call(AUTOENCODERS[name], f"autoencoder {name}", options, **given)


class SupervisedAutoencoder(nn.Module):
    """Convolutions from images to codes, a head that classifies, and one that reconstructs.

    The `encoder` returns codes [batch, code] before the ReLU. See `supervised_autoencoder`.
    """

    def __init__(self, channels: int, side: int, classes: int, code: int) -> None:
        super().__init__()
        small = ((side - 4) // 2 - 4) // 2
        self.encoder = nn.Sequential(
            *(nn.Conv2d(channels, 32, 5), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Conv2d(32, 64, 5), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Flatten(), nn.Linear(64 * small**2, code)),
        )
        self.classifier = nn.Sequential(nn.ReLU(), nn.Linear(code, classes))
        self.decoder = nn.Sequential(
            *(nn.Linear(code, 64 * small**2), nn.ReLU(), nn.Unflatten(1, (64, small, small))),
            *(nn.Upsample(scale_factor=2), nn.ConvTranspose2d(64, 32, 5), nn.ReLU()),
            *(nn.Upsample(scale_factor=2), nn.ConvTranspose2d(32, channels, 5)),
        )

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Class scores [batch, classes] and reconstructed images."""
        codes = self.encoder(images)
        return self.classifier(codes), self.decoder(codes)


def supervised_autoencoder(
    channels: int, side: int, classes: int, code: Width = 512
) -> SupervisedAutoencoder:
    """REPA's network: an encoder, a classifier of its codes and a decoder that mirrors the encoder.

    Encoder and classifier have 608,702 parameters for FEMNIST. REPA only says "convolutional, ReLU,
    max pooling, and Softmax layers". These are the layers of the classifier in the authors'
    follow-up code, which compares its codes of 512 entries.

    Args:
        code: width of the code of an image.
    """
    return SupervisedAutoencoder(channels, side, classes, code)
