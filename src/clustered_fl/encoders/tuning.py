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

Images = Callable[[np.ndarray], Tensor]


def tuned(
    encoder: Autoencoder,
    images: Images,
    rows: tuple[np.ndarray, ...],
    mode: Mode,
    settings: TrainingSettings,
    seed: int,
) -> Iterator[Autoencoder]:
    """The encoder that each client embeds its images with; valid until the next is asked for.

    Args:
        encoder: the server's; it is not changed.
        images: gives float32 [batch, C, H, W] in 0..1 for row numbers.
        rows: of each client.
        mode: who trains what.
        settings: of the training.
        seed: of the order of the images.
    """
    if mode == "none":
        yield from (encoder for _ in rows)
    elif mode == "pooled":
        shared = _pooled(deepcopy(encoder), images, np.concatenate(rows), settings, seed)
        yield from (shared for _ in rows)
    else:
        yield from _one_by_one(encoder, images, rows, mode, settings, seed)


def _one_by_one(
    encoder: Autoencoder,
    images: Images,
    rows: tuple[np.ndarray, ...],
    mode: Mode,
    settings: TrainingSettings,
    seed: int,
) -> Iterator[Autoencoder]:
    training = Reconstruction(deepcopy(encoder), settings)
    for client, own in enumerate(rows):
        if mode == "independent":
            training = Reconstruction(deepcopy(encoder), settings)
        for epoch in range(settings.epochs):
            training.epoch(images, own, generator(seed, "fine-tuning", client, epoch))
        yield training.network


def _pooled(
    network: Autoencoder, images: Images, rows: np.ndarray, settings: TrainingSettings, seed: int
) -> Autoencoder:
    """Train on all images; the schedule counts batches as if they were epochs, as in the code."""
    training, size = Reconstruction(network.train(), settings), settings.batch_size
    for epoch in range(settings.epochs):
        order = generator(seed, "pooled fine-tuning", epoch).permutation(rows)
        for first in range(0, len(order), size):
            training.step(images(order[first : first + size]))
            training.schedule.step()
    return network
