"""The loop of many papers' published code: every image is decoded again in every epoch.

Images go through PIL, ToTensor and Normalize one at a time, the global model is copied for every
client, and the loss is read after every step.
"""

from copy import deepcopy

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset, Subset
from torchvision import __version__, transforms

from networks import accuracy, stacked, started, update
from peers import Engine
from problem import DEVIATION, MEAN, TESTS, Problem


class Pictures(Dataset):
    """Images as torchvision serves MNIST and CIFAR, [n, channels, height, width] when given."""

    def __init__(self, pixels: np.ndarray, labels: np.ndarray) -> None:
        # One channel is kept as [n, H, W], colours as [n, H, W, 3]: what PIL reads.
        self.images = pixels[:, 0] if pixels.shape[1] == 1 else pixels.transpose(0, 2, 3, 1)
        self.labels = labels
        channels = pixels.shape[1]
        normalise = transforms.Normalize((float(MEAN),) * channels, (float(DEVIATION),) * channels)
        self.transform = transforms.Compose([transforms.ToTensor(), normalise])

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        image = Image.fromarray(np.ascontiguousarray(self.images[index]))
        return self.transform(image), int(self.labels[index])


class PilLoop(Engine):
    """A copy of the global model per client, one client after another."""

    name, version = "pil-loop", f"torchvision {__version__}"

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.model = started(problem)
        self.loaders = [
            DataLoader(Subset(Pictures(pixels, labels), problem.order(client)), problem.batch_size)
            for client, (pixels, labels) in enumerate(
                zip(problem.pixels, problem.labels, strict=True)
            )
        ]
        self.tests = DataLoader(Pictures(problem.test_pixels, problem.test_labels), TESTS)

    def train(self) -> list[nn.Module]:
        """Train every client from the start parameters."""
        self.accuracies = []
        return [self._client(batches) for batches in self.loaders]

    def updates(self, result: list[nn.Module]) -> np.ndarray:
        """How far the models have moved [M, P]."""
        return stacked(update(model, self.problem) for model in result)

    def _client(self, batches: DataLoader) -> nn.Module:
        model, losses = deepcopy(self.model), []
        optimizer = torch.optim.SGD(model.parameters(), self.problem.lr)
        for images, labels in batches:
            model.zero_grad()
            loss = functional.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        self.accuracies.append(accuracy(model, self.tests))
        return model
