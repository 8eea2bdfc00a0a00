"""Unsupervised fine-tuning of a server's encoder on the clients' images (FLT's Enc2).

The paper lets every client fine-tune its own copy for J = 5 epochs ("independent"). Its code never
did: at first it passed one model with one optimiser from client to client ("sequential"), so that
the learning rate, halved every ten epochs, is nearly zero after twenty clients; later it trained on
the pooled images of all clients ("pooled"), with the rate halved every ten batches.
"""

from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Literal

import numpy as np
from torch import Tensor

from clustered_fl.encoders.training import Reconstruction, TrainingSettings
from clustered_fl.models.autoencoder import Autoencoder
from clustered_fl.randomness import generator

Mode = Literal["none", "independent", "sequential", "pooled"]
SEPARATE = ("none", "independent")
"""Modes in which a client's encoder depends on its own images alone."""
Images = Callable[[np.ndarray], Tensor]


def tuned(
    encoder: Autoencoder,
    images: Images,
    rows: tuple[np.ndarray, ...],
    mode: Mode,
    settings: TrainingSettings,
    seed: int,
    first: int = 0,
) -> Iterator[Autoencoder]:
    """The encoder that each client embeds its images with; valid until the next is asked for.

    `images` gives float32 [batch, C, H, W] in 0..1 for row numbers, `rows` those of each client.
    The given encoder is the server's and is not changed. Clients before `first` are left out, where
    the others do not need them (`SEPARATE`).
    """
    if mode == "none":
        yield from (encoder for _ in rows[first:])
        return
    training = Reconstruction(deepcopy(encoder), settings)
    if mode == "pooled":
        for epoch in range(settings.epochs):
            order = generator(seed, "pooled fine-tuning", epoch).permutation(np.concatenate(rows))
            _batchwise(training, images, order, settings.batch_size)
        yield from (training.network for _ in rows)
        return
    for client, own in enumerate(rows[first:], first):
        if mode == "independent":
            training = Reconstruction(deepcopy(encoder), settings)
        for epoch in range(settings.epochs):
            training.epoch(images, own, generator(seed, "fine-tuning", client, epoch))
        yield training.network


def _batchwise(training: Reconstruction, images: Images, rows: np.ndarray, size: int) -> None:
    """One pass; the schedule counts batches as if they were epochs, as in the code."""
    training.network.train()
    losses = []
    for first in range(0, len(rows), size):
        losses.append(training.step(images(rows[first : first + size])))
        training.schedule.step()
    training.finite(losses)
