"""FedAvg with fine-tuning: one model for all clients, which each client tunes before using it.

The baseline of the literature on personalised models (Collins, Hassani, Mokhtari, Shakkottai, ICML
2021; Cheng, Chadha, Duchi, arXiv:2108.07313): after R rounds of FedAvg every client trains the
global model on its own data for a few epochs, and is tested with the resulting model. Here the last
f rounds of the budget are for fine-tuning: what is tested after round t is FedAvg for t - f rounds,
then f rounds in which every client trains alone, for every t. No budget is favoured, and no client
trains longer than under another method. FedAvg itself goes on from its global model as if nothing
had been tested.
"""

import torch
from pydantic import Field
from pydantic.dataclasses import dataclass

from clustered_fl.engine.training import Engine
from clustered_fl.methods.state import (
    RoundSettings,
    State,
    Step,
    aggregate,
    observe,
    start,
    trained,
)
from clustered_fl.options import STRICT


@dataclass(frozen=True, config=STRICT)
class Settings(RoundSettings):
    """Settings of FedAvg with fine-tuning.

    Attributes:
        alone: rounds f that every client trains alone before a test.
    """

    alone: int = Field(default=5, ge=1)


def init(engine: Engine, settings: Settings) -> State:
    """The global model, and one for every client; `past` are the global models of late rounds."""
    state = with_own_models(engine)
    state.memory["past"] = state.models[:1].clone()
    return state


def with_own_models(engine: Engine) -> State:
    """Group 0 with the global model and all clients, and a group for the model of each client."""
    clients = range(engine.federation.clients)
    state = start(engine, [1 + client for client in clients])
    state.tree[0].clients = list(clients)
    together(state)
    return state


def together(state: State) -> None:
    """Let all clients use the global model."""
    state.grouping = [0] * len(state.grouping)


def apart(state: State) -> None:
    """Let every client use its own model."""
    state.grouping = [1 + client for client in range(len(state.grouping))]


def round_(state: State, engine: Engine, settings: Settings, number: int) -> Step:
    """A round of FedAvg."""
    together(state)
    now = trained(state, engine, settings, number)
    rows = observe(state, now, engine, settings)
    aggregate(state, now, engine, settings.weighting)
    past = torch.cat([state.memory["past"], state.models[:1]])
    state.memory["past"] = past[-1 - settings.alone :]
    return state, rows


def before_scores(state: State, engine: Engine, settings: Settings, number: int) -> None:
    """Let every client train alone, from the global model of f rounds ago, and be tested on that.

    The draws are those of the rounds that FedAvg has had since.
    """
    past, clients = state.memory["past"], list(range(len(state.grouping)))
    state.models[1:] = past[0]
    for round_number in range(number + 1 - len(past), number):
        own = list(state.models[1:])
        state.models[1:] += engine.train(own, clients, round_number)[0]
    apart(state)
