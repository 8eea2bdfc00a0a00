"""Scores of every client under its group's model."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from clustered_fl.engine.training import Engine

BATCH = 200


def evaluate(
    engine: Engine, models: Tensor, clients: Sequence[int], grouping: Sequence[int]
) -> np.ndarray:
    """Test score of each client: accuracy (fraction) or perplexity, whichever the task names.

    `grouping` gives each client's row of `models` [groups, P]. Clients of one group that share a
    test set share its forward pass, because only their labels differ.
    """
    tests = engine.federation.test_of[list(clients)].tolist()
    keys = list(zip(grouping, tests, strict=True))
    pairs = sorted(set(keys))
    members = [[i for i, key in enumerate(keys) if key == pair] for pair in pairs]

    def one(pair: tuple[int, int], places: list[int]) -> np.ndarray:
        group, test = pair
        answer, rows = engine.scorer(models[group]), engine.federation.test_sets[test]
        return _means(engine, answer, rows, [clients[i] for i in places], engine.task.score)

    means = np.empty(len(clients))
    for places, values in zip(members, engine.workers.map(one, pairs, members), strict=True):
        means[places] = values
    return np.exp(means) if engine.task.metric == "perplexity" else means


def training_losses(engine: Engine, models: Tensor, clients: Sequence[int]) -> np.ndarray:
    """Mean training loss of each client under every model [groups, P]: float64 [n, groups].

    Without dropout, as a client judges a model that it did not train (IFCA's cluster estimate).
    """
    train, loss = engine.federation.train, engine.task.loss

    def one(model: Tensor) -> list[np.ndarray]:
        answer = engine.scorer(model)
        return [_means(engine, answer, train[client], [client], loss) for client in clients]

    return np.stack(engine.workers.map(one, list(models)), axis=1)[..., 0]


@torch.no_grad()
def _means(
    engine: Engine, answer: Callable, rows: np.ndarray, clients: Sequence[int], measure: Callable
) -> np.ndarray:
    """Mean of a sum of the task over the terms of `rows` [n], in the labels of each client."""
    totals, terms = np.zeros((2, len(clients)))
    for first in range(0, len(rows), BATCH):
        part = rows[first : first + BATCH]
        answers = answer(part)
        for i, client in enumerate(clients):
            targets = engine.workload.targets(part, client)
            totals[i] += float(measure(answers, targets))
            terms[i] += engine.task.terms(targets)
    return totals / terms
