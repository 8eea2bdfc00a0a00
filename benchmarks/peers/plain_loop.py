"""PyTorch without a framework: TensorDataset, DataLoader and a loop over clients."""

from copy import deepcopy

import numpy as np
import torch
from torch import nn

from networks import accuracy, loader, stacked, started, test_loader, train, update
from peers import Engine
from problem import Problem


class PlainLoop(Engine):
    """A copy of the global model per client, one client after another."""

    name, version = "plain-loop", torch.__version__

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.model = started(problem)
        self.loaders = [loader(problem, client) for client in range(problem.clients)]
        self.tests = test_loader(problem)

    def train(self) -> list[nn.Module]:
        """Train every client from the start parameters."""
        models, self.accuracies = [], []
        for batches in self.loaders:
            models.append(deepcopy(self.model))
            train(models[-1], batches, self.problem.lr)
            self.accuracies.append(accuracy(models[-1], self.tests))
        return models

    def updates(self, result: list[nn.Module]) -> np.ndarray:
        """How far the models have moved [M, P]."""
        return stacked(update(model, self.problem) for model in result)
