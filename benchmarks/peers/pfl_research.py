"""pfl-research: federated averaging on its simulated backend, in one process."""

from importlib.metadata import version

import numpy as np
import torch
from pfl.aggregate.simulate import SimulatedBackend
from pfl.algorithm.base import NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.context import UserContext
from pfl.data.federated_dataset import FederatedDataset
from pfl.data.pytorch import PyTorchTensorDataset
from pfl.data.sampling import MinimizeReuseUserSampler
from pfl.hyperparam.base import NNTrainHyperParams
from pfl.metrics import Metrics
from pfl.model.pytorch import PyTorchModel
from pfl.postprocessor.base import Postprocessor
from pfl.stats import MappedVectorStatistics
from torch import Tensor, nn
from torch.nn import functional

from networks import ordered, started
from peers import Engine
from problem import Problem


class Classifier(nn.Sequential):
    """A network with the two methods that pfl asks for."""

    def loss(self, images: Tensor, labels: Tensor) -> Tensor:
        """Mean cross-entropy of a batch."""
        return functional.cross_entropy(self(images), labels)

    def metrics(self, images: Tensor, labels: Tensor) -> dict:
        """Nothing is evaluated."""
        return {}


class Collect(Postprocessor):
    """Keeps every user's update, which pfl otherwise only sums."""

    def __init__(self, clients: int, parameters: int) -> None:
        self.rows = torch.empty(clients, parameters)

    def postprocess_one_user(
        self, *, stats: MappedVectorStatistics, user_context: UserContext
    ) -> tuple[MappedVectorStatistics, Metrics]:
        """Copy the update; pfl writes the next user's into the same memory."""
        flat = [part.reshape(-1) for part in stats.values()]
        torch.cat(flat, out=self.rows[int(user_context.user_id)])
        return stats, Metrics()


def _backend(problem: Problem, collect: Collect) -> SimulatedBackend:
    """Users in the order of their numbers, each with its data in the given order."""
    users = {
        str(client): PyTorchTensorDataset(ordered(problem, client), user_id=str(client))
        for client in range(problem.clients)
    }
    data = FederatedDataset(users.__getitem__, MinimizeReuseUserSampler(list(users)))
    return SimulatedBackend(data, data, postprocessors=[collect])


class PflResearch(Engine):
    """pfl's FederatedAveraging, one iteration per round, without evaluation."""

    name, version = "pfl-research", version("pfl")

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        module = Classifier(*started(problem))
        central = torch.optim.SGD(module.parameters(), lr=1.0)
        self.model = PyTorchModel(module, torch.optim.SGD, central)
        self.start = self.model.get_parameters()
        self.collect = Collect(problem.clients, len(problem.start))
        self.backend = _backend(problem, self.collect)
        self.algorithm = FederatedAveraging()
        self.settings = NNAlgorithmParams(
            central_num_iterations=2,
            evaluation_frequency=2,
            train_cohort_size=problem.clients,
            val_cohort_size=None,
        )
        self.local = NNTrainHyperParams(
            local_num_epochs=1, local_learning_rate=problem.lr, local_batch_size=problem.batch_size
        )

    def train(self) -> Tensor:
        """Train every client from the start parameters."""
        self.model.set_parameters(self.start)
        # pfl evaluates in iteration 0 whatever it is told; nobody else evaluates here.
        self.algorithm._current_central_iteration = 1
        self.algorithm.run(
            self.settings, self.backend, self.model, self.local, send_metrics_to_platform=False
        )
        return self.collect.rows

    def updates(self, result: Tensor) -> np.ndarray:
        """The collected updates [M, P]."""
        return result.numpy()
