"""Pipelines of image transforms, one per client, and their application to datasets.

A client's images are transformed once and stored, so that training, encoders and tests use the same
pixels. Rows of no client (the official test images) are unchanged.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import nn
from torchvision.transforms import v2

from clustered_fl.data.dataset import Dataset, with_images
from clustered_fl.data.drift import Drift
from clustered_fl.data.federation import Federation
from clustered_fl.errors import InputError
from clustered_fl.options import call
from clustered_fl.randomness import generator

# Ranges: BorisRado/CoLEDS-clustering@80f5ad6, src/data/partitioning.py, lines 70-93. REPA's text
# names blur and "black and white"; the latter is not in that code. The code adds a horizontal flip
# to all pipelines, which does not distinguish clients and is left out.
_TRANSFORMS = (
    lambda u: v2.RandomVerticalFlip(p=u(0.5, 1)),
    lambda u: v2.ColorJitter(u(0, 1), u(0, 1), u(0, 1), u(0, 0.5)),
    lambda u: v2.RandomRotation(degrees=u(0, 90), fill=u(0, 1)),
    lambda u: v2.ElasticTransform(alpha=u(0, 150)),
    lambda u: v2.GaussianBlur(kernel_size=3, sigma=u(0.2, 1)),
    lambda u: v2.RandomInvert(p=u(0, 1)),
    lambda u: v2.RandomSolarize(threshold=u(0, 1), p=u(0, 1)),
    lambda u: v2.RandomGrayscale(p=1.0),
)


def pipeline(drift: Drift, seed: int, client: int) -> nn.Module:
    """A client's transforms of float images in 0..1; equal pipeline numbers give equal ones."""
    rng = generator(seed, "pipeline", drift.pipeline_of(client))
    chosen = rng.choice(len(_TRANSFORMS), drift.transforms, replace=False)
    return v2.Compose([_TRANSFORMS[which](rng.uniform) for which in chosen])


def transformed(images: np.ndarray, through: nn.Module, draw: int) -> np.ndarray:
    """Images uint8 [n, C, H, W] after a pipeline, with separate draws per image (angles, ...).

    `draw` is the seed of torch's generator, whose state is restored afterwards.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(draw)
        found = [through(image) for image in torch.from_numpy(images).float() / 255]
    return (torch.stack(found).clamp(0, 1) * 255).round().byte().numpy()


@contextmanager
def _one_thread() -> Iterator[None]:
    """One thread per operation of PyTorch, for the same bits on every machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def drifted(
    dataset: Dataset, federation: Federation, drift: dict[str, Any] | None, seed: int
) -> Dataset:
    """The dataset with each client's training and test images passed through its pipeline.

    Raises: InputError if `drift` is None, or the dataset has no images.
    """
    if drift is None:
        raise InputError("this federation has no drift; give it the setting `drift`")
    if dataset.x.ndim != 4:
        raise InputError(f"{dataset.name} has no images; drift transforms images")
    settings, x = call(Drift, "drift", drift), dataset.x.copy()
    with _one_thread():
        for client in range(len(federation.train)):
            rows = federation.rows_of(client)
            draw = int(generator(seed, "transformed images", client).integers(2**31))
            x[rows] = transformed(dataset.x[rows], pipeline(settings, seed, client), draw)
    note = f"every client's images passed through its pipeline of {settings.transforms} transforms"
    return with_images(dataset, x, note)
