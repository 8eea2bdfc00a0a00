"""A classifier that also reconstructs its input, after which REPA compares clients."""

from typing import Annotated

from pydantic import Field
from torch import Tensor, nn


class SupervisedAutoencoder(nn.Module):
    """Convolutions to a code of an image; one head names it, another draws it again.

    Args:
        channels, side: of the images.
        classes: number of outputs.
        code: width of the code.

    Attributes:
        encoder: images to codes [batch, code], before the ReLU.
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
        """Class scores [batch, classes] and images as drawn again."""
        codes = self.encoder(images)
        return self.classifier(codes), self.decoder(codes)


def supervised_autoencoder(
    channels: int, side: int, classes: int, code: Annotated[int, Field(ge=1)] = 512
) -> SupervisedAutoencoder:
    """Encoder and classifier have 608,702 parameters for FEMNIST.

    REPA says "convolutional, ReLU, max pooling, and Softmax layers" and no more. These are the
    layers of the classifier in the authors' follow-up code, whose code of 512 is what they compare,
    and a decoder that mirrors them.
    """
    return SupervisedAutoencoder(channels, side, classes, code)
