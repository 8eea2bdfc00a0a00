"""The loop of many papers' published code: every image is decoded again in every epoch.

Images go through PIL, ToTensor and Normalize one at a time, the global model is copied for every
client, and the loss is read after every step.
"""

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset, Subset
from torchvision import __version__, transforms

from peers.plain_loop import PlainLoop
from problem import DEVIATION, MEAN, TESTS


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


class PilLoop(PlainLoop):
    """The plain loop over such images, which reads the loss after every step."""

    name, version = "pil-loop", f"torchvision {__version__}"

    def _loaders(self) -> tuple[list[DataLoader], DataLoader]:
        problem = self.problem
        own = [
            DataLoader(Subset(Pictures(pixels, labels), problem.order(client)), problem.batch_size)
            for client, (pixels, labels) in enumerate(
                zip(problem.pixels, problem.labels, strict=True)
            )
        ]
        return own, DataLoader(Pictures(problem.test_pixels, problem.test_labels), TESTS)

    def _train(self, model: nn.Module, batches: DataLoader) -> None:
        losses, optimizer = [], torch.optim.SGD(model.parameters(), self.problem.lr)
        for images, labels in batches:
            model.zero_grad()
            loss = functional.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
