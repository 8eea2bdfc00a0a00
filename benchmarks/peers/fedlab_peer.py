"""FedLab's serial trainer: clients one after another in one process.

FedLab's own data sets read a client's file from disk whenever its loader is made; here they stay in
memory, which favours it.
"""

from importlib.metadata import version

import numpy as np
import torch
from fedlab.contrib.algorithm.basic_client import SGDSerialClientTrainer
from fedlab.contrib.dataset.basic_dataset import BaseDataset, FedDataset
from torch import Tensor
from torch.utils.data import DataLoader

from networks import ordered, stacked, started
from peers import Engine
from problem import Problem


class OrderedData(FedDataset):
    """Every client's data in the given order."""

    def __init__(self, problem: Problem) -> None:
        super().__init__()
        self.num = problem.clients
        self.parts = [BaseDataset(*ordered(problem, client)) for client in range(self.num)]

    def get_dataloader(self, id: int, batch_size: int, type: str = "train") -> DataLoader:  # noqa: A002
        """Batches of client `id`, not shuffled."""
        return DataLoader(self.parts[id], batch_size)


class FedLab(Engine):
    """FedLab's SGDSerialClientTrainer, without a server."""

    name, version = "fedlab", version("fedlab")

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.start = torch.from_numpy(problem.start)
        self.trainer = SGDSerialClientTrainer(started(problem), problem.clients)
        self.trainer.setup_dataset(OrderedData(problem))
        self.trainer.setup_optim(epochs=1, batch_size=problem.batch_size, lr=problem.lr)

    def train(self) -> list[list[Tensor]]:
        """Train every client from the start parameters; FedLab returns their parameters [P]."""
        self.trainer.local_process([self.start], range(self.problem.clients))
        return self.trainer.uplink_package

    def updates(self, result: list[list[Tensor]]) -> np.ndarray:
        """How far the parameters have moved [M, P]."""
        return stacked(parameters - self.start for parameters, *_ in result)
