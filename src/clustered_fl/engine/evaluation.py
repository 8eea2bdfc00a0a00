"""Scores of every client under its group's model."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from clustered_fl.engine.scoring import Sums, at_a_time, means, sums
from clustered_fl.engine.training import Engine


def evaluate(
    engine: Engine, models: Tensor, clients: Sequence[int], grouping: Sequence[int]
) -> np.ndarray:
    """Test score of each client: accuracy (fraction) or perplexity, whichever the task names.

    `grouping` gives each client's row of `models` [groups, P]. Clients of a group with the same
    test set share one forward pass, because only their labels differ.
    """
    tests = engine.federation.test_of[list(clients)].tolist()
    members: dict[tuple[int, int], list[int]] = {}
    for position, pair in enumerate(zip(grouping, tests, strict=True)):
        members.setdefault(pair, []).append(position)

    def one(pair: tuple[int, int], places: list[int]) -> Sums:
        group, test = pair
        answer, rows = engine.scorer(models[group]), engine.federation.test_sets[test]
        return sums(engine.workload, answer, rows, [clients[i] for i in places], engine.task.score)

    found = np.empty(len(clients))
    scores = means(engine.workers.map(one, members, members.values()))
    for places, values in zip(members.values(), scores, strict=True):
        found[places] = values
    return np.exp(found) if engine.task.metric == "perplexity" else found


def training_losses(engine: Engine, models: Tensor, clients: Sequence[int]) -> np.ndarray:
    """Mean training loss of each client under every model [groups, P]: float64 [n, groups].

    Dropout is off. IFCA clients use it to choose among the models.
    """
    work, train, loss = engine.workload, engine.federation.train, engine.task.loss

    def one(model: Tensor) -> list[Sums]:
        answer = engine.scorer(model)
        return [sums(work, answer, train[client], [client], loss) for client in clients]

    found = [each for own in engine.workers.map(one, list(models)) for each in own]
    return np.reshape(means(found), (len(models), -1)).T


def best_fits(engine: Engine, models: Tensor, clients: Sequence[int]) -> np.ndarray:
    """Number of training samples that each model [groups, P] fits best: int64 [n, groups].

    The best fit has the smallest loss; of equals, the first. Dropout is off. FedSoft clients use it
    to find out of which clusters their data are.
    """
    work, train, size = engine.workload, engine.federation.train, at_a_time(engine.device)
    parts = [(c, train[c][i : i + size]) for c in clients for i in range(0, len(train[c]), size)]

    @torch.no_grad()
    def one(model: Tensor) -> Tensor:
        answer, losses = engine.scorer(model), engine.task.losses
        return torch.cat([losses(answer(rows), work.targets(rows, c)) for c, rows in parts])

    best = torch.stack(engine.workers.map(one, list(models))).argmin(0).cpu().numpy()
    ends = np.cumsum([len(train[client]) for client in clients])[:-1]
    return np.stack([np.bincount(own, minlength=len(models)) for own in np.split(best, ends)])
