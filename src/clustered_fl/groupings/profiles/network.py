"""The network of a federated run, after any round whose model the record contains."""

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

from clustered_fl.data.dataset import Dataset
from clustered_fl.data.federation import Federation
from clustered_fl.engine.scoring import at_a_time
from clustered_fl.engine.task import ImageTask
from clustered_fl.errors import InputError
from clustered_fl.models import RECONSTRUCTING_MODELS, build_model
from clustered_fl.models.inputs import separated
from clustered_fl.records import reading as records

# "node0.model" is the last model, "round5.node0" that after five rounds (`jobs.train`).
_MODEL = re.compile(r"(?:round(\d+)\.)?node(\d+)(?:\.model)?")


@dataclass(frozen=True)
class Profiler:
    """A run's network and its clients.

    `models` maps numbers of rounds, of `rounds` in all, to parameters [P] on the CPU; computations
    with them run on `device`.
    """

    run: str
    config: dict[str, Any]
    rounds: int
    models: dict[int, Tensor]
    dataset: Dataset
    federation: Federation
    device: torch.device | str = "cpu"

    def model(self, rounds: int | None = None) -> Tensor:
        """Parameters [P] after some rounds, None for the last; InputError if not stored."""
        wanted = self.rounds if rounds is None else rounds
        if wanted not in self.models:
            kept = ", ".join(map(str, sorted(self.models)))
            raise InputError(
                f"run {self.run} has kept no model after {wanted} rounds; it has {kept}"
            )
        return self.models[wanted]

    def build(self) -> nn.Module:
        """The network with random parameters."""
        _, network = separated(self.config["model"])
        about = network.pop("name"), self.dataset.x.shape[1:], len(self.dataset.classes)
        return build_model(*about, **network)

    def network(self, rounds: int | None = None) -> nn.Module:
        """The network after some rounds, in evaluation mode; InputError if its size is wrong."""
        model = self.model(rounds)
        with torch.random.fork_rng(devices=[]):
            built = self.build()
        expected = sum(each.numel() for each in built.parameters())
        if len(model) != expected:
            raise InputError(
                f"run {self.run} has {len(model)} parameters, for these images there are {expected}"
            )
        vector_to_parameters(model.clone(), built.parameters())
        return built.to(self.device).eval()

    def task(self, images: Tensor, labels: Tensor) -> ImageTask:
        """A task of images uint8 [n, C, H, W] and labels, with the run's normalisation."""
        inputs, _ = separated(self.config["model"])
        return ImageTask(images.to(self.device), labels.to(self.device), *inputs.normalise)

    def inputs(self, images: Tensor) -> Iterator[Tensor]:
        """Images uint8 [n, C, H, W], normalised and in batches.

        With channels last and batches that fit into a cache, codes take 0.57 of the time that they
        take without.
        """
        task = self.task(images, torch.zeros(len(images), dtype=torch.int64))
        parts = torch.arange(len(images)).split(at_a_time(task.x.device))
        return (task.inputs(rows).contiguous(memory_format=torch.channels_last) for rows in parts)

    @torch.no_grad()
    def codes(self, images: Tensor, network: nn.Module) -> np.ndarray:
        """Codes float32 [n, e] of images uint8 [n, C, H, W]."""
        return torch.cat([network.encoder(part) for part in self.inputs(images)]).cpu().numpy()

    @torch.no_grad()
    def probabilities(self, images: Tensor, network: nn.Module) -> np.ndarray:
        """Softmax of the class scores, float64 [n, classes]."""
        scores = [classifier(network)(part) for part in self.inputs(images)]
        return torch.cat(scores).double().softmax(1).cpu().numpy()


def classifier(network: nn.Module) -> nn.Module:
    """Encoder and classifier of a network, without its decoder."""
    return nn.Sequential(network.encoder, network.classifier)


def load_profiler(
    folder: Path, dataset: Dataset, federation: Federation, device: torch.device | str = "cpu"
) -> Profiler:
    """The profiler in a run's record; InputError unless it has one model with an encoder."""
    record = records.load_record(folder)
    config, rounds = record["config"], record["rounds"]
    try:
        tensors = records.load_models(folder)
    except (OSError, SafetensorError) as error:
        raise InputError(f"cannot read {folder / records.MODELS}: {error}; train again") from error
    named = [(found, tensors[name]) for name in tensors if (found := _MODEL.fullmatch(name))]
    require_one_encoder(config, len({found[2] for found, _ in named}))
    models = {int(found[1] or rounds): torch.from_numpy(model) for found, model in named}
    return Profiler(config["run"], config, rounds, models, dataset, federation, device)


def require_one_encoder(config: dict[str, Any], groups: int) -> None:
    """Raise InputError for a run whose network has no encoder, or with several groups."""
    run, name = config["run"], config["model"]["name"]
    if name not in RECONSTRUCTING_MODELS:
        allowed = ", ".join(RECONSTRUCTING_MODELS)
        raise InputError(f"run {run} trained {name}, which has no encoder; allowed are {allowed}")
    if groups != 1:
        raise InputError(f"run {run} has models of {groups} groups; a profiler needs that of one")
