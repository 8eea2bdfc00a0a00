"""Autoencoders whose codes stand for images: FLT's encoders for 28 x 28 and for 32 x 32 pixels.

The paper says "two convolutional layers followed by a single fully connected layer" for both. Its
code has that for grey images and a deeper residual network for CIFAR; so do we. Inputs are float32
[batch, channels, side, side] in 0..1, and outputs are near.
"""

from typing import Annotated

from pydantic import Field
from torch import Tensor, nn

from clustered_fl.errors import InputError
from clustered_fl.options import call

Width = Annotated[int, Field(ge=1)]


class Autoencoder(nn.Module):
    """An encoder and a decoder.

    Args:
        encoder: images to codes [batch, e].
        decoder: codes to images.
    """

    def __init__(self, encoder: nn.Module, decoder: nn.Module) -> None:
        super().__init__()
        self.encoder, self.decoder = encoder, decoder

    def forward(self, images: Tensor) -> Tensor:
        """Reconstruct images."""
        return self.decoder(self.encoder(images))


class _Residual(nn.Module):
    """A narrow 3 x 3 convolution and a 1 x 1 convolution, around which the input passes."""

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

    Raises:
        InputError: if the side is no multiple of four.
    """
    _require_multiple(side, 4)
    small = side // 4
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
    return Autoencoder(encoder, decoder)


def residual_autoencoder(
    channels: int, side: int, code: Width = 128, width: Width = 128
) -> Autoencoder:
    """Five convolutions, two residual blocks and batch normalisation, one fully connected layer.

    The widths of FLT's public code (`extractor_models.py`), where `width` is 128: the encoder has
    439,064 parameters for CIFAR-10, seven times as many as the clients' network.

    Raises:
        InputError: if the side is no multiple of four, or the width none of 16.
    """
    _require_multiple(side, 4)
    if width % 16:
        raise InputError(f"the residual autoencoder needs a width that 16 divides, not {width}")
    small, half, few = side // 4, width // 2, width // 16
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


def _require_multiple(side: int, factor: int) -> None:
    if side % factor:
        raise InputError(f"the autoencoder needs a side that {factor} divides, not {side} pixels")


AUTOENCODERS = {
    "conv_autoencoder": conv_autoencoder,
    "residual_autoencoder": residual_autoencoder,
}


def build_autoencoder(name: str, image_shape: tuple[int, ...], **options: int) -> Autoencoder:
    """Create autoencoder `name` with random parameters from torch's global generator.

    Args:
        name: key of `AUTOENCODERS`.
        image_shape: (channels, height, width).
        options: from the ledger: code, the number e of entries of a code.
    Raises:
        InputError: if it is unknown, has no such setting, or does not fit the images.
    """
    if name not in AUTOENCODERS:
        known = ", ".join(AUTOENCODERS)
        raise InputError(f"unknown autoencoder {name!r}; allowed are {known}")
    if len(image_shape) != 3 or image_shape[1] != image_shape[2]:
        raise InputError(f"autoencoders need square images, not samples of shape {image_shape}")
    channels, side, _ = image_shape
    given = {"channels": channels, "side": side}
    return call(AUTOENCODERS[name], f"autoencoder {name}", options, **given)
