"""PyTorch without a framework: TensorDataset, DataLoader and a loop over clients."""

from copy import deepcopy

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader

from networks import accuracy, loader, stacked, started, test_loader, train, update
from peers import Engine
from problem import Problem


class PlainLoop(Engine):
    """A copy of the global model per client, one client after another."""

    name, version = "plain-loop", torch.__version__

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.model = started(problem)
        self.loaders, self.tests = self._loaders()

    def train(self) -> list[nn.Module]:
        """Train every client from the start parameters."""
        models, self.accuracies = [], []
        for batches in self.loaders:
            models.append(deepcopy(self.model))
            self._train(models[-1], batches)
            self.accuracies.append(accuracy(models[-1], self.tests))
        return models

    def updates(self, result: list[nn.Module]) -> np.ndarray:
        """How far the models have moved [M, P]."""
        return stacked(update(model, self.problem) for model in result)

    def _loaders(self) -> tuple[list[DataLoader], DataLoader]:
        """Of each client's data, and of the tests."""
        clients = range(self.problem.clients)
        return [loader(self.problem, client) for client in clients], test_loader(self.problem)

    def _train(self, model: nn.Module, batches: DataLoader) -> None:
        train(model, batches, self.problem.lr)
