"""PyTorch without a framework: TensorDataset, DataLoader and a loop over clients."""

import numpy as np
import torch

from networks import accuracy, loader, stacked, started, test_loader, train, update
from peers import Engine
from problem import Problem


class PlainLoop(Engine):
    """A fresh model per client, one client after another."""

    name, version = "plain-loop", torch.__version__

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.loaders = [loader(problem, client) for client in range(problem.clients)]
        self.tests = test_loader(problem)

    def train(self) -> np.ndarray:
        """Train every client from the start parameters."""
        moved, self.accuracies = [], []
        for batches in self.loaders:
            model = started(self.problem)
            train(model, batches, self.problem.lr)
            moved.append(update(model, self.problem))
            self.accuracies.append(accuracy(model, self.tests))
        return stacked(moved)
