"""IFCA: every client joins the cluster with the model that fits its data best (Ghosh et al. 2020).

In each round a participant computes the training loss of all cluster models and trains the best
one; the trained models of a cluster are averaged (the official "model averaging" option). FLT
starts with rounds of FedAvg and then, like IFCA's own code for FEMNIST, trains random clusters for
a few rounds, because otherwise all models would stay equal. That code trains all layers during
FedAvg, and only the last layer afterwards ("weight sharing"). Norms and gaps that are measured
during FedAvg are those of the random clusters that follow it.
"""

from dataclasses import replace
from functools import lru_cache
from typing import Literal

import torch
from pydantic import Field
from pydantic.dataclasses import dataclass

from clustered_fl.engine.evaluation import training_losses
from clustered_fl.engine.training import Engine
from clustered_fl.errors import InputError
from clustered_fl.methods.state import (
    RoundSettings,
    State,
    Step,
    aggregate,
    observe,
    participants,
    require_clusters,
    start,
    trained,
)
from clustered_fl.options import STRICT
from clustered_fl.randomness import generator


@dataclass(frozen=True, config=STRICT)
class Settings(RoundSettings):
    """Settings of IFCA.

    Attributes:
        clusters: number of clusters, which IFCA must be given.
        pretrain: rounds of FedAvg before clustering.
        random_rounds: further rounds with random clusters; if this and `pretrain` are 0, the
            cluster models start as different random models.
        clustered_layers: layers trained after `pretrain`, "all" or "last".
    """

    clusters: int = Field(ge=1)
    pretrain: int = Field(default=0, ge=0)
    random_rounds: int = Field(default=0, ge=0)
    clustered_layers: Literal["all", "last"] = "all"

    def __post_init__(self) -> None:
        if self.pretrain and not self.random_rounds and self.clusters > 1:
            raise InputError(
                "IFCA after FedAvg needs random_rounds of 1 or more: equal models stay equal"
            )


def init(engine: Engine, settings: Settings) -> State:
    """Clients in random clusters; initial models differ unless FedAvg comes first.

    Raises: InputError if there are more clusters than clients.
    """
    clients = engine.federation.clients
    require_clusters("IFCA", settings.clusters, clients)
    drawn = generator(engine.seed, "random clusters").permutation(clients) % settings.clusters
    state = start(engine, drawn.tolist())
    if not settings.pretrain and not settings.random_rounds:
        state.models = torch.stack([engine.initial_model(i) for i in range(settings.clusters)])
    return state


def round_(state: State, engine: Engine, settings: Settings, number: int) -> Step:
    """Participants choose a cluster and train its model; clusters average."""
    if number >= settings.pretrain + settings.random_rounds:
        _choose(state, engine, participants(engine, settings.fraction, number))
    shared = settings.clustered_layers == "all" or number < settings.pretrain
    trains = engine if shared else _of_last_layer(engine)
    now = trained(state, trains, settings, number)
    rows = observe(state, now, engine, settings)
    if number < settings.pretrain:  # FedAvg: all models stay equal
        grouping, state.grouping = state.grouping, [0] * len(state.grouping)
        aggregate(state, now, engine, settings.weighting)
        state.models[1:], state.grouping = state.models[0], grouping
    else:
        aggregate(state, now, engine, settings.weighting)
    return state, rows


@lru_cache(maxsize=1)
def _of_last_layer(engine: Engine) -> Engine:
    """The same engine, but training only the last layer."""
    settings = replace(engine.settings, layers="last")
    return Engine(replace(engine.workload, settings=settings), engine.workers.number)


def before_scores(state: State, engine: Engine, settings: Settings, number: int) -> None:
    """Let all clients choose their clusters, as in the official evaluation."""
    if number >= settings.pretrain + settings.random_rounds:
        _choose(state, engine, list(range(engine.federation.clients)))


def _choose(state: State, engine: Engine, clients: list[int]) -> None:
    """Assign clients to the model with the smallest training loss; the first one in a tie."""
    best = training_losses(engine, state.models, clients).argmin(1)
    for client, group in zip(clients, best.tolist(), strict=True):
        state.grouping[client] = group
