"""FedSoft: a client may belong to several clusters; a penalty keeps its model near theirs.

Ruan and Joe-Wong, "FedSoft: Soft Clustered Federated Learning with Proximal Local Updating" (AAAI
2022), Algorithm 1. The importance u_ks of cluster s for client k is the share of its samples that
the model c_s of the cluster fits best. The client keeps a model w_k of its own, which it trains on
its loss plus penalty/2 times the sum over s of u_ks |w_k - c_s|^2. Up to a constant, this is the
penalty of FedProx with the mean of the cluster models, weighted by importance, as its centre. A
cluster model is the mean of clients' models, in proportion to u_ks n_k. Clients are tested on their
own models. A client's group in the record is the cluster of largest importance.

Where not all clients participate, each cluster draws its own, with probabilities in proportion to
u_ks n_k, and takes their plain mean.
"""

from dataclasses import replace

import numpy as np
import torch
from pydantic import Field
from pydantic.dataclasses import dataclass

from clustered_fl.engine.evaluation import best_fits
from clustered_fl.engine.training import Engine
from clustered_fl.methods.ditto import pulled
from clustered_fl.methods.state import (
    Node,
    Round,
    RoundSettings,
    State,
    Step,
    observe,
    require_clusters,
    weighted_mean,
    weights,
)
from clustered_fl.options import STRICT
from clustered_fl.randomness import generator

SMOOTHER = 1e-4
"""Importance of a cluster that fits no sample of a client best, before they sum to one; of the
authors' code (`solvers.py`)."""


@dataclass(frozen=True, config=STRICT)
class Settings(RoundSettings):
    """Settings of FedSoft.

    Attributes:
        clusters: number of clusters, which FedSoft must be given.
        penalty: lambda, the pull of the cluster models; the authors' code has 0.1 for MNIST and
            letters, and 0.01 for CIFAR-10.
        interval: tau, rounds from one estimate of the importance to the next; theirs has 2.
    """

    clusters: int = Field(ge=1)
    penalty: float = Field(default=0.1, ge=0)
    interval: int = Field(default=2, ge=1)


def init(engine: Engine, settings: Settings) -> State:
    """The same random model for all clients, and other random models for the clusters.

    The first rows of `models` are the clients', and the last those of the clusters.

    Raises: InputError if there are more clusters than clients.
    """
    clients, clusters = engine.federation.clients, settings.clusters
    require_clusters("FedSoft", clusters, clients)
    own = engine.initial_model().repeat(clients, 1)
    shared = torch.stack([engine.initial_model(1 + cluster) for cluster in range(clusters)])
    tree = [Node(cluster, None, [], round=0) for cluster in range(clusters)]
    leaves = [0] * clients + list(range(clusters))
    return State(torch.cat([own, shared]), leaves, list(range(clients)), tree)


def round_(state: State, engine: Engine, settings: Settings, number: int) -> Step:
    """Participants train their own models, pulled towards the clusters, which then average them."""
    if number % settings.interval == 0:
        _estimate(state, engine, settings)
    shares = _shares(state.memory["importance"].cpu().numpy(), engine, settings, number)
    clients = np.flatnonzero(shares.any(1)).tolist()
    shared = state.models[engine.federation.clients :]
    centres = state.memory["importance"].to(shared)[clients] @ shared
    own, local = state.models_of(clients), pulled(engine, engine.path, settings.penalty)
    trained = local.train(own, clients, number, list(centres))
    state.models[clients] += trained[0]
    rows = observe(_clustered(state), Round(clients, *trained, number), engine, settings)
    for model, share in zip(shared, shares[clients].T, strict=True):
        model.copy_(weighted_mean(own, share))
    return state, rows


def _estimate(state: State, engine: Engine, settings: Settings) -> None:
    """Find the importance [clients, clusters], and the cluster of largest importance."""
    clients = engine.federation.clients
    counts = best_fits(engine, state.models[clients:], range(clients))
    found = np.where(counts > 0, counts / counts.sum(1, keepdims=True), SMOOTHER)
    found /= found.sum(1, keepdims=True)
    state.memory["importance"] = torch.from_numpy(found)
    nearest = found.argmax(1)
    state.leaves[:clients] = nearest.tolist()
    for node in state.tree:
        node.clients = np.flatnonzero(nearest == node.id).tolist()


def _shares(importance: np.ndarray, engine: Engine, settings: Settings, number: int) -> np.ndarray:
    """Weights of the clients' models in each cluster's mean: [clients, clusters]."""
    clients = len(importance)
    size = weights(engine.federation.sizes[:clients], settings.weighting)
    shares = importance * size[:, None]
    shares /= shares.sum(0)
    if settings.fraction >= 1.0:
        return shares
    count, drawn = max(1, round(settings.fraction * clients)), np.zeros_like(shares)
    for cluster, share in enumerate(shares.T):
        rng = generator(engine.seed, "participants", number, cluster)
        drawn[rng.choice(clients, count, replace=False, p=share), cluster] = 1 / count
    return drawn


def _clustered(state: State) -> State:
    """The state as if every client trained the model of its cluster, for measurements."""
    clients, clusters = len(state.grouping), len(state.tree)
    shared, nearest = state.models[clients:], state.leaves[:clients]
    return replace(state, models=shared, leaves=list(range(clusters)), grouping=nearest)
