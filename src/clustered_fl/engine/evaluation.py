"""Scores of every client under its group's model."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from clustered_fl.engine.training import Engine

BATCH = 200


def evaluate(
    engine: Engine, models: Tensor, clients: Sequence[int], grouping: Sequence[int]
) -> np.ndarray:
    """Test score of each client: accuracy (fraction) or perplexity, whichever the task names.

    Clients of one group that share a test set share its forward pass, because only their labels
    differ.

    Args:
        models: [groups, P].
        clients: [n] client numbers.
        grouping: [n] row of `models` for each.
    Returns:
        float64 [n].
    """
    tests = engine.federation.test_of[list(clients)].tolist()
    keys = list(zip(grouping, tests, strict=True))
    pairs = sorted(set(keys))
    members = [[i for i, key in enumerate(keys) if key == pair] for pair in pairs]

    def one(p: int) -> np.ndarray:
        return _shared(engine, models[pairs[p][0]], [clients[i] for i in members[p]], pairs[p][1])

    scores = np.empty(len(clients))
    for positions, values in zip(members, engine.workers.map(one, range(len(pairs))), strict=True):
        scores[positions] = values
    return scores


def training_losses(engine: Engine, models: Tensor, clients: Sequence[int]) -> np.ndarray:
    """Mean training loss of each client under every model [groups, P]: float64 [n, groups].

    Without dropout, as a client judges a model that it did not train (IFCA's cluster estimate).
    """
    found = engine.workers.map(lambda model: _losses(engine, model, clients), list(models))
    return np.stack(found, axis=1)


@torch.no_grad()
def _losses(engine: Engine, model: Tensor, clients: Sequence[int]) -> np.ndarray:
    """Mean training loss [n] of one model."""
    network, means = engine.workers.own().load(model), np.zeros(len(clients))
    for i, client in enumerate(clients):
        rows, total, terms = engine.federation.train[client], 0.0, 0
        for first in range(0, len(rows), BATCH):
            part = rows[first : first + BATCH]
            targets = engine.workload.targets(part, client)
            answers = network(engine.workload.inputs(part))
            total += float(engine.task.loss(answers, targets))
            terms += engine.task.terms(targets)
        means[i] = total / terms
    return means


@torch.no_grad()
def _shared(engine: Engine, model: Tensor, clients: list[int], test: int) -> np.ndarray:
    """Scores of `clients` on one test set under one model."""
    network = engine.workers.own().load(model)
    rows = engine.federation.test_sets[test]
    totals, terms = np.zeros(len(clients)), np.zeros(len(clients))
    for first in range(0, len(rows), BATCH):
        part = rows[first : first + BATCH]
        answers = network(engine.workload.inputs(part))
        for i, client in enumerate(clients):
            targets = engine.workload.targets(part, client)
            totals[i] += float(engine.task.score(answers, targets))
            terms[i] += engine.task.terms(targets)
    means = totals / terms
    return np.exp(means) if engine.task.metric == "perplexity" else means
