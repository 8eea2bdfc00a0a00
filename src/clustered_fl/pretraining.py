"""One encoder: an autoencoder trained before any client is known; it leaves a record."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from clustered_fl import records
from clustered_fl.data import dataset as datasets
from clustered_fl.data.dataset import Dataset
from clustered_fl.encoders.storage import PICTURES, WEIGHTS, save_tensors
from clustered_fl.encoders.training import Reconstruction, TrainingSettings, reconstruct
from clustered_fl.files import digest, write_json
from clustered_fl.machine import device_name, peak_memory, versions
from clustered_fl.models.autoencoder import Autoencoder, build_autoencoder
from clustered_fl.options import call
from clustered_fl.randomness import generator

SEED, SHOWN, TESTED = 0, 10, 1000


def execute(
    config: dict[str, Any], data: Path, out: Path, code: str, tell: Callable[[str], None]
) -> None:
    """Train an encoder and write its record to `out`.

    Args:
        config: as the ledger states it, resolved for one scale.
        data: file of the dataset.
        out: folder.
        code: fingerprint of the code that computes it.
        tell: receives progress.
    """
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    began, dataset = time.monotonic(), datasets.load(data)
    settings = call(TrainingSettings, f"encoder {config['name']}", config["training"])
    shape = dataset.x.shape[1:]
    torch.manual_seed(int(generator(SEED, "encoder").integers(2**31)))
    network = build_autoencoder(**{"name": "", **config["model"]}, image_shape=shape)
    losses = _train(network, dataset, settings, tell)
    tests = _tests(dataset)
    again = reconstruct(network, tests)
    error = float(torch.nn.functional.mse_loss(again, tests))
    tell(f"mean squared error {error:.4f} on test images, peak memory {peak_memory()} MB")
    save_tensors(network.state_dict(), out / WEIGHTS)
    pictures = {"images": tests[:SHOWN], "reconstructions": again[:SHOWN]}
    save_tensors({n: _bytes(p) for n, p in pictures.items()}, out / PICTURES)
    cost = {"seconds": round(time.monotonic() - began, 1), "peak_memory_mb": peak_memory()}
    write_json(out / records.COST, cost | {"threads": 1})
    found = {"losses": losses, "test_error": error, "image_shape": list(shape)}
    found |= {"parameters": _sizes(network), "code": code}
    write_json(out / records.RECORD, _about(config, dataset) | found)


def _train(
    network: Autoencoder,
    dataset: Dataset,
    settings: TrainingSettings,
    tell: Callable[[str], None],
) -> list[float]:
    """Train in place; returns the mean squared error of each epoch."""
    x, rows = torch.from_numpy(dataset.x), np.arange(dataset.train_rows)
    if settings.samples:
        rows = generator(SEED, "encoder samples").permutation(rows)[: settings.samples]
    training, losses = Reconstruction(network, settings), []
    for epoch in range(settings.epochs):
        rng = generator(SEED, "encoder order", epoch)
        losses.append(training.epoch(lambda part: x[part].float() / 255, rows, rng))
        tell(f"epoch {epoch + 1}/{settings.epochs}  mean squared error {losses[-1]:.4f}")
    return losses


def _bytes(images: torch.Tensor) -> torch.Tensor:
    return (images.clamp(0, 1) * 255).round().byte()


def _tests(dataset: Dataset) -> torch.Tensor:
    """Some test images, float32 in 0..1."""
    rows = np.arange(dataset.train_rows, len(dataset.y))
    chosen = generator(SEED, "encoder tests").permutation(rows)[:TESTED]
    return torch.from_numpy(dataset.x[chosen]).float() / 255


def _sizes(network: Autoencoder) -> dict[str, int]:
    """Number of parameters of the encoder, which clients download, and of the decoder."""
    parts = {"encoder": network.encoder, "decoder": network.decoder}
    return {name: sum(p.numel() for p in part.parameters()) for name, part in parts.items()}


def _about(config: dict[str, Any], dataset: Dataset) -> dict[str, Any]:
    return {
        "config": config,
        "config_digest": digest(config),
        "data": dataset.described,
        "device": device_name(torch.device("cpu")),
        "versions": versions(),
    }
