"""The network of a federated run, after any of its rounds that the record has kept."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from torch import Tensor, nn
from torch.nn.utils import vector_to_parameters

from clustered_fl import records
from clustered_fl.data.dataset import Dataset
from clustered_fl.data.federation import Federation
from clustered_fl.engine.task import ImageTask
from clustered_fl.errors import InputError
from clustered_fl.models import RECONSTRUCTING_MODELS, build_model

BATCH = 500

# "node0.model" is the last model, "round5.node0" that after five rounds (`clustered_fl.runs`).
_MODEL = re.compile(r"(?:round(\d+)\.)?node(\d+)(?:\.model)?")


@dataclass(frozen=True)
class Profiler:
    """A run's network and the clients that it was trained on.

    Attributes:
        run: its name.
        config: its configuration.
        rounds: how many it had.
        models: rounds -> parameters [P] after them.
        dataset, federation: images, labels and clients.
    """

    run: str
    config: dict[str, Any]
    rounds: int
    models: dict[int, Tensor]
    dataset: Dataset
    federation: Federation

    def model(self, rounds: int | None = None) -> Tensor:
        """Parameters [P] after so many rounds, None for the last.

        Raises:
            InputError: if the record has not kept them.
        """
        wanted = self.rounds if rounds is None else rounds
        if wanted not in self.models:
            kept = ", ".join(map(str, sorted(self.models)))
            raise InputError(
                f"run {self.run} has kept no model after {wanted} rounds; it has {kept}"
            )
        return self.models[wanted]

    def build(self) -> nn.Module:
        """The network with random parameters."""
        options = dict(self.config["model"])
        for of_the_task in ("normalise", "reconstruction", "length"):
            options.pop(of_the_task, None)
        shape = self.dataset.x.shape[1:]
        return build_model(image_shape=shape, classes=len(self.dataset.classes), **options)

    def build_classifier(self) -> nn.Module:
        """Encoder and classifier with random parameters, without the decoder."""
        return _named_parts(self.build())

    def classifier(self, rounds: int | None = None) -> nn.Module:
        """Encoder and classifier after so many rounds."""
        return _named_parts(self.network(rounds))

    def network(self, rounds: int | None = None) -> nn.Module:
        """The network after so many rounds, in evaluation mode.

        Raises:
            InputError: if the model is absent or of another size.
        """
        model = self.model(rounds)
        with torch.random.fork_rng(devices=[]):
            built = self.build()
        expected = sum(each.numel() for each in built.parameters())
        if len(model) != expected:
            raise InputError(
                f"run {self.run} has {len(model)} parameters, for these images there are {expected}"
            )
        vector_to_parameters(model.clone(), built.parameters())
        return built.eval()

    def task(self, images: Tensor, labels: Tensor) -> ImageTask:
        """Images uint8 [n, C, H, W] and labels as the run's network sees them."""
        mean, deviation = self.config["model"].get("normalise", (0.0, 1.0))
        return ImageTask(images, labels, mean, deviation)

    def inputs(self, images: Tensor) -> Iterator[Tensor]:
        """Images uint8 [n, C, H, W], normalised and in batches."""
        for part in images.split(BATCH):
            nobody = torch.zeros(len(part), dtype=torch.int64)
            yield self.task(part, nobody).inputs(torch.arange(len(part)))

    @torch.no_grad()
    def codes(self, images: Tensor, network: nn.Module) -> np.ndarray:
        """Codes float32 [n, e] of images uint8 [n, C, H, W]."""
        return torch.cat([network.encoder(part) for part in self.inputs(images)]).numpy()

    @torch.no_grad()
    def probabilities(self, images: Tensor, network: nn.Module) -> np.ndarray:
        """Softmax of the class scores, float64 [n, classes]."""
        scores = [_named_parts(network)(part) for part in self.inputs(images)]
        return torch.cat(scores).double().softmax(1).numpy()


def _named_parts(network: nn.Module) -> nn.Module:
    return nn.Sequential(network.encoder, network.classifier)


def load_profiler(folder: Path, dataset: Dataset, federation: Federation) -> Profiler:
    """The profiler that a run's record makes.

    Args:
        folder: of the record.
        dataset, federation: of the clients to profile.
    Raises:
        InputError: if there is no whole record, or not of one network that encodes images.
    """
    record = records.load_record(folder)
    config, rounds = record["config"], record["rounds"]
    if config["model"]["name"] not in RECONSTRUCTING_MODELS:
        raise InputError(
            f"run {config['run']} trained {config['model']['name']}, which has no encoder; "
            f"allowed are {', '.join(RECONSTRUCTING_MODELS)}"
        )
    try:
        tensors = records.load_models(folder)
    except (OSError, SafetensorError) as error:
        raise InputError(f"cannot read {folder / records.MODELS}: {error}; train again") from error
    named = [(found, tensors[name]) for name in tensors if (found := _MODEL.fullmatch(name))]
    nodes = {found[2] for found, _ in named}
    if nodes != {"0"}:
        raise InputError(
            f"run {config['run']} has models of {len(nodes)} groups; a profiler needs that of one"
        )
    models = {int(found[1] or rounds): torch.from_numpy(model) for found, model in named}
    return Profiler(config["run"], config, rounds, models, dataset, federation)
