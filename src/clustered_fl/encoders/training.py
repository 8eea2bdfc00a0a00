"""Training an autoencoder to reconstruct images.

A plain loop without `clustered_fl.engine`: there is one network and one pool of images, batch
normalisation has running averages that are not parameters, and the learning rate decreases.
"""

from collections.abc import Callable, Sequence
from typing import Any

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
    """Settings of training; the defaults are those of FLT's code when the paper was written.

    Attributes:
        epochs: passes over the images.
        batch_size: images per step of Adam on the mean squared error.
        lr: learning rate.
        halve_every: epochs after which the learning rate is halved.
        samples: number of images, drawn at random; None for all.
    """

    epochs: int = Field(ge=0)
    batch_size: int = Field(default=64, ge=1)
    lr: float = Field(default=1e-3, gt=0)
    halve_every: int = Field(default=10, ge=1)
    samples: int | None = Field(default=None, ge=1)


class Reconstruction:
    """An autoencoder in training, in place, with its optimiser; the caller counts the epochs."""

    def __init__(self, network: Autoencoder, settings: TrainingSettings) -> None:
        # With channels last, steps of the residual autoencoder take four fifths of the time.
        self.network = network.to(memory_format=torch.channels_last)
        self._batch = settings.batch_size
        self.optimiser = torch.optim.Adam(network.parameters(), settings.lr)
        self.schedule = torch.optim.lr_scheduler.StepLR(self.optimiser, settings.halve_every, 0.5)

    def epoch(
        self, images: Callable[[np.ndarray], Tensor], rows: np.ndarray, rng: np.random.Generator
    ) -> float:
        """One pass in random order; returns the mean squared error during the pass.

        `images` gives float32 [batch, C, H, W] in 0..1 for row numbers.
        """
        self.network.train()
        order, total = rng.permutation(rows), 0.0
        parts = [order[first : first + self._batch] for first in range(0, len(order), self._batch)]
        losses = self.finite([self.step(images(part)) for part in parts])
        for loss, part in zip(losses, parts, strict=True):
            total += loss * len(part)
        self.schedule.step()
        return total / len(order)

    def step(self, images: Tensor) -> Tensor:
        """One step of Adam; returns the loss before it, without waiting for a GPU."""
        self.optimiser.zero_grad()
        loss = functional.mse_loss(self.network(images), images)
        loss.backward()
        self.optimiser.step()
        return loss.detach()

    def finite(self, losses: Sequence[Tensor]) -> list[float]:
        """The losses of some steps as numbers; an InputError if one is not finite."""
        found = torch.stack([*losses]).tolist() if losses else []
        if not np.isfinite(found).all():
            raise InputError(
                "the loss of the autoencoder is no longer finite; a learning rate below "
                f"{self.optimiser.param_groups[0]['lr']:g} may help"
            )
        return found

    def pack(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Tensors and JSON content of the current state, for a checkpoint."""
        adam = self.optimiser.state_dict()
        tensors = {f"network.{name}": each for name, each in self.network.state_dict().items()}
        for number, moments in adam["state"].items():
            tensors |= {f"adam.{number}.{name}": each for name, each in moments.items()}
        return tensors, {"adam": adam["param_groups"], "schedule": self.schedule.state_dict()}

    def unpack(self, tensors: dict[str, Tensor], content: dict[str, Any]) -> None:
        """Restore the state that `pack` returned."""
        parts: dict[str, dict[str, Tensor]] = {}
        for name, each in tensors.items():
            owner, _, own = name.rpartition(".") if name.startswith("adam.") else ("", "", name)
            parts.setdefault(owner, {})[own.removeprefix("network.")] = each
        self.network.load_state_dict(parts.pop(""))
        moments = {int(owner.removeprefix("adam.")): each for owner, each in parts.items()}
        self.optimiser.load_state_dict({"state": moments, "param_groups": content["adam"]})
        self.schedule.load_state_dict(content["schedule"])


@torch.no_grad()
def embed(network: Autoencoder, images: Tensor) -> np.ndarray:
    """Codes float32 [n, e] of `images` [n, C, H, W], which are on the network's device."""
    network.eval()
    return torch.cat([network.encoder(part) for part in images.split(BATCH)]).cpu().numpy()


@torch.no_grad()
def reconstruct(network: Autoencoder, images: Tensor) -> Tensor:
    """Images [n, C, H, W] after a pass through encoder and decoder."""
    network.eval()
    return torch.cat([network(part) for part in images.split(BATCH)])
