"""The benchmark's networks in PyTorch, and the usual training loop around them."""

from collections.abc import Iterable

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import parameters_to_vector, vector_to_parameters
from torch.utils.data import DataLoader, TensorDataset

from problem import TESTS, Architecture, Problem


def network(architecture: Architecture) -> nn.Sequential:
    """The network with PyTorch's own layers."""
    layers: list[nn.Module] = []
    for a, b in architecture.channels:
        layers += [nn.Conv2d(a, b, 5, padding=architecture.padding), nn.ReLU(), nn.MaxPool2d(2)]
    layers.append(nn.Flatten())
    for a, b in architecture.widths:
        layers += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def started(problem: Problem) -> nn.Sequential:
    """The network at the problem's start parameters."""
    model = network(problem.architecture)
    # Copied, because parameters become views of what they are set to.
    vector_to_parameters(torch.from_numpy(problem.start.copy()), model.parameters())
    return model


def update(model: nn.Module, problem: Problem) -> Tensor:
    """How far the parameters have moved from the start [P]."""
    return parameters_to_vector(model.parameters()).detach() - torch.from_numpy(problem.start)


def ordered(problem: Problem, client: int) -> tuple[Tensor, Tensor]:
    """The client's inputs and labels in the order in which it sees them."""
    rows = problem.order(client)
    return torch.from_numpy(problem.inputs[client, rows]), torch.from_numpy(
        problem.labels[client, rows]
    )


def loader(problem: Problem, client: int) -> DataLoader:
    """The client's batches as most code makes them, without shuffling."""
    return DataLoader(TensorDataset(*ordered(problem, client)), problem.batch_size)


def test_loader(problem: Problem) -> DataLoader:
    """The test images in one batch, and no batch where there are none."""
    tests = torch.from_numpy(problem.test_inputs), torch.from_numpy(problem.test_labels)
    return DataLoader(TensorDataset(*tests), TESTS)


def train(model: nn.Module, batches: Iterable[tuple[Tensor, Tensor]], lr: float) -> None:
    """One pass of plain SGD."""
    optimizer = torch.optim.SGD(model.parameters(), lr)
    for images, labels in batches:
        optimizer.zero_grad()
        functional.cross_entropy(model(images), labels).backward()
        optimizer.step()


@torch.no_grad()
def accuracy(model: nn.Module, batches: Iterable[tuple[Tensor, Tensor]]) -> float:
    """Fraction of correct answers; NaN without images."""
    correct, count = 0, 0
    for images, labels in batches:
        correct += int((model(images).argmax(1) == labels).sum())
        count += len(labels)
    return correct / count if count else float("nan")


def stacked(rows: Iterable[Tensor]) -> np.ndarray:
    """Updates of all clients [M, P]."""
    return torch.stack(list(rows)).numpy()
