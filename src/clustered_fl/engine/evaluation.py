"""Scores of every client under its group's model."""

from collections.abc import Sequence

import numpy as np
from torch import Tensor

from clustered_fl.engine.scoring import Sums, means, sums
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
