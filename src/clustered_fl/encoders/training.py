"""Training an autoencoder to reconstruct images.

A plain loop without `clustered_fl.engine`: one network on one pool of images is no federated
workload, batch normalisation keeps averages that are no parameters, and the learning rate falls.
"""

from collections.abc import Callable

import numpy as np
import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Tensor
from torch.nn import functional

from clustered_fl.errors import InputError
from clustered_fl.models.autoencoder import Autoencoder
from clustered_fl.options import STRICT

BATCH = 500


@dataclass(frozen=True, config=STRICT)
class TrainingSettings:
    """How an autoencoder is trained; the defaults are those of FLT's code in the paper's time.

    Attributes:
        epochs: passes over the images.
        batch_size: images per step of Adam on the mean squared error.
        lr: learning rate.
        halve_every: epochs after which the learning rate is halved.
        samples: so many images, drawn at random; None for all.
    """

    epochs: int = Field(ge=0)
    batch_size: int = Field(default=64, ge=1)
    lr: float = Field(default=1e-3, gt=0)
    halve_every: int = Field(default=10, ge=1)
    samples: int | None = Field(default=None, ge=1)


class Reconstruction:
    """An autoencoder in training, in place, with its optimiser; the caller counts the epochs."""

    def __init__(self, network: Autoencoder, settings: TrainingSettings) -> None:
        self.network, self._batch = network, settings.batch_size
        self.optimiser = torch.optim.Adam(network.parameters(), settings.lr)
        self.schedule = torch.optim.lr_scheduler.StepLR(self.optimiser, settings.halve_every, 0.5)

    def epoch(
        self, images: Callable[[np.ndarray], Tensor], rows: np.ndarray, rng: np.random.Generator
    ) -> float:
        """One pass in random order; returns the mean squared error on the way.

        `images` gives float32 [batch, C, H, W] in 0..1 for row numbers.
        """
        self.network.train()
        order, total = rng.permutation(rows), 0.0
        for first in range(0, len(order), self._batch):
            part = images(order[first : first + self._batch])
            total += self.step(part) * len(part)
        self.schedule.step()
        return total / len(order)

    def step(self, images: Tensor) -> float:
        """One step of Adam; returns the loss before it, or an InputError if that is not finite."""
        self.optimiser.zero_grad()
        loss = functional.mse_loss(self.network(images), images)
        loss.backward()
        self.optimiser.step()
        if not torch.isfinite(loss):
            raise InputError(
                "the loss of the autoencoder is no longer finite; a learning rate below "
                f"{self.optimiser.param_groups[0]['lr']:g} may help"
            )
        return float(loss.detach())


@torch.no_grad()
def embed(network: Autoencoder, images: Tensor) -> np.ndarray:
    """Codes of `images` [n, C, H, W]: float32 [n, e]."""
    network.eval()
    return torch.cat([network.encoder(part) for part in images.split(BATCH)]).numpy()


@torch.no_grad()
def reconstruct(network: Autoencoder, images: Tensor) -> Tensor:
    """Images [n, C, H, W] after a pass through encoder and decoder."""
    network.eval()
    return torch.cat([network(part) for part in images.split(BATCH)])
