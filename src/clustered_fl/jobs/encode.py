"""One encoder: an autoencoder trained before any client is known; it leaves a record."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from clustered_fl.data import dataset as datasets
from clustered_fl.data.dataset import Dataset
from clustered_fl.encoders.storage import PICTURES, WEIGHTS, save_tensors
from clustered_fl.encoders.training import Reconstruction, TrainingSettings, reconstruct
from clustered_fl.files import write_json
from clustered_fl.models.autoencoder import Autoencoder, build_autoencoder
from clustered_fl.options import call
from clustered_fl.randomness import generator
from clustered_fl.records import reading as records
from clustered_fl.records.machine import described, peak_memory
from clustered_fl.records.reading import Origin

SEED, SHOWN, TESTED = 0, 10, 1000


def execute(
    config: dict[str, Any], data: Path, out: Path, origin: Origin, tell: Callable[[str], None]
) -> None:
    """Train an encoder on the dataset in the file `data`, and write its record to `out`."""
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    began, dataset = time.monotonic(), datasets.load(data, config.get("dataset"))
    network, losses = trained(dataset, config["model"], config["training"], tell)
    rows = np.arange(dataset.train_rows, len(dataset.y))
    chosen = generator(SEED, "encoder tests").permutation(rows)[:TESTED]
    tests = torch.from_numpy(dataset.x[chosen]).float() / 255
    again = reconstruct(network, tests)
    error = float(torch.nn.functional.mse_loss(again, tests))
    tell(f"mean squared error {error:.4f} on test images, peak memory {peak_memory()} MB")
    save_tensors(network.state_dict(), out / WEIGHTS)
    pictures = {"images": tests[:SHOWN], "reconstructions": again[:SHOWN]}
    pictures = {name: (x.clamp(0, 1) * 255).round().byte() for name, x in pictures.items()}
    save_tensors(pictures, out / PICTURES)
    cost = {"seconds": round(time.monotonic() - began, 1), "peak_memory_mb": peak_memory()}
    write_json(out / records.COST, cost | {"threads": 1})
    # Clients download the encoder, not the decoder.
    parts = {"encoder": network.encoder, "decoder": network.decoder}
    record = described(config, origin, torch.device("cpu")) | {
        "losses": losses,
        "test_error": error,
        "score": error,
        "image_shape": list(dataset.x.shape[1:]),
        "parameters": {n: sum(p.numel() for p in part.parameters()) for n, part in parts.items()},
        "data": dataset.described,
    }
    write_json(out / records.RECORD, record)


def trained(
    dataset: Dataset, model: dict[str, Any], training: dict[str, Any], tell: Callable[[str], None]
) -> tuple[Autoencoder, list[float]]:
    """An autoencoder of the training images, and the mean squared error of each epoch.

    Raises: InputError if there is no such autoencoder, or it has no such settings.
    """
    settings = call(TrainingSettings, "training of the encoder", training)
    torch.manual_seed(int(generator(SEED, "encoder").integers(2**31)))
    network = build_autoencoder(**{"name": "", **model}, image_shape=dataset.x.shape[1:])
    x, rows = torch.from_numpy(dataset.x), np.arange(dataset.train_rows)
    if settings.samples:
        rows = generator(SEED, "encoder samples").permutation(rows)[: settings.samples]
    process, losses = Reconstruction(network, settings), []
    for epoch in range(settings.epochs):
        rng = generator(SEED, "encoder order", epoch)
        losses.append(process.epoch(lambda part: x[part].float() / 255, rows, rng))
        tell(f"epoch {epoch + 1}/{settings.epochs}  mean squared error {losses[-1]:.4f}")
    return network, losses
