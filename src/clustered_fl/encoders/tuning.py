"""Unsupervised fine-tuning of a server's encoder on the clients' images (FLT's Enc2).

In the paper every client fine-tunes its own copy for J = 5 epochs ("independent"). The code never
did this. At first it passed one model with one optimiser from client to client ("sequential"), so
the learning rate, halved every ten epochs, is nearly zero after twenty clients. Later it trained on
the pooled images of all clients ("pooled"), halving the rate every ten batches. Steps at such rates
change no parameter and are skipped.
"""

from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from clustered_fl.encoders.training import Reconstruction, TrainingSettings
from clustered_fl.models.autoencoder import Autoencoder
from clustered_fl.randomness import generator

Mode = Literal["none", "independent", "sequential", "pooled"]
SEPARATE = ("none", "independent")
"""Modes in which a client's encoder depends on its own images only."""
Images = Callable[[np.ndarray], Tensor]

NEGLIGIBLE = 1e-10
"""Learning rate below which all remaining steps of Adam vanish in float32 rounding."""
REMEMBERED = 100
"""Batches after which earlier values have weight 0.9^100 = 3e-5 in running averages."""


class _Shared(Reconstruction):
    """One model for all clients; its learning rate decreases until steps have no effect.

    The running averages of batch normalisation are still updated then.
    """

    @property
    def _is_over(self) -> bool:
        return self.optimiser.param_groups[0]["lr"] < NEGLIGIBLE

    def step(self, images: Tensor) -> Tensor:
        if not self._is_over:
            return super().step(images)
        with torch.no_grad():
            return functional.mse_loss(self.network(images), images)

    def is_idle(self, later: int) -> bool:
        """Whether an epoch has no effect after `later` further batches of the same client."""
        averages = any(isinstance(part, nn.BatchNorm2d) for part in self.network.modules())
        return self._is_over and (later >= REMEMBERED or not averages)


def tuned(
    encoder: Autoencoder,
    images: Images,
    rows: tuple[np.ndarray, ...],
    mode: Mode,
    settings: TrainingSettings,
    seed: int,
    first: int = 0,
) -> Iterator[Autoencoder]:
    """Yield each client's encoder, valid until the next one is requested.

    `images` gives float32 [batch, C, H, W] in 0..1 for row numbers, `rows` those of each client.
    The given encoder is the server's and is not changed. Clients before `first` are skipped in
    modes in which later clients do not depend on them (`SEPARATE`).
    """
    if mode == "none":
        yield from (encoder for _ in rows[first:])
        return
    if mode == "independent":
        for client, own in enumerate(rows[first:], first):
            training = Reconstruction(deepcopy(encoder), settings)
            for epoch in range(settings.epochs):
                training.epoch(images, own, generator(seed, "fine-tuning", client, epoch))
            yield training.network
        return
    shared = _Shared(deepcopy(encoder), settings)
    passed_on = _pooled if mode == "pooled" else _sequential
    yield from passed_on(shared, images, rows, settings, seed)


def _sequential(
    training: _Shared,
    images: Images,
    rows: tuple[np.ndarray, ...],
    settings: TrainingSettings,
    seed: int,
) -> Iterator[Autoencoder]:
    for client, own in enumerate(rows):
        batches = -(-len(own) // settings.batch_size)
        for epoch in range(settings.epochs):
            if not training.is_idle(batches * (settings.epochs - epoch - 1)):
                training.epoch(images, own, generator(seed, "fine-tuning", client, epoch))
        yield training.network


def _pooled(
    training: _Shared,
    images: Images,
    rows: tuple[np.ndarray, ...],
    settings: TrainingSettings,
    seed: int,
) -> Iterator[Autoencoder]:
    for epoch in range(settings.epochs):
        order = generator(seed, "pooled fine-tuning", epoch).permutation(np.concatenate(rows))
        if not training.is_idle(len(order) // settings.batch_size * (settings.epochs - epoch - 1)):
            _batchwise(training, images, order, settings.batch_size)
    yield from (training.network for _ in rows)


def _batchwise(training: Reconstruction, images: Images, rows: np.ndarray, size: int) -> None:
    """One pass; as in FLT's code, the schedule counts batches instead of epochs."""
    training.network.train()
    losses = []
    for first in range(0, len(rows), size):
        losses.append(training.step(images(rows[first : first + size])))
        training.schedule.step()
    training.finite(losses)
