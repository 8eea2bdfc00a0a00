"""Averaging as FLT's public code does it, for `variant: code` runs of FedAvg, Local and one-shot.

Both of its semantics average over all clients, not over the round's participants. "stale" (January
and February 2021, `main_fed.py`): a client counts with the last model that it has uploaded, the
random initial one before. "in_place" (from 12 March 2021, `fedavg.py`): every client has a model of
its own; they are replaced one after the other within the loop, so that later clients average
already averaged models, and even with everybody related there is no single global model.
"""

from typing import Literal

import numpy as np
import torch
from pydantic.dataclasses import dataclass
from torch import Tensor

from clustered_fl.engine.training import Engine
from clustered_fl.errors import InputError
from clustered_fl.methods import one_shot
from clustered_fl.methods.one_shot import alike
from clustered_fl.methods.state import Row, State, observe, participants, start, weights
from clustered_fl.options import STRICT


@dataclass(frozen=True, config=STRICT)
class Settings(one_shot.Settings):
    """Settings of the public code.

    Attributes:
        slots: "stale" or "in_place".
        related: "grouping" (the run's), "all" (its FedAvg) or "self" (its Local).
    """

    slots: Literal["stale", "in_place"] = "stale"
    related: Literal["grouping", "all", "self"] = "grouping"


def init(engine: Engine, settings: Settings) -> State:
    """Every client with the initial model in its slot.

    Raises:
        InputError: if there is no relatedness.
    """
    clients = engine.federation.clients
    related = _relatedness(clients, settings)
    grouping = alike(related) if settings.slots == "stale" else list(range(clients))
    state = start(engine.federation, engine, grouping)
    if settings.slots == "stale":
        state.memory["slots"] = engine.initial_model().repeat(clients, 1)
    return state


def _relatedness(clients: int, settings: Settings) -> np.ndarray:
    if settings.related == "all":
        return np.ones((clients, clients))
    if settings.related == "self":
        return np.eye(clients)
    if settings.relatedness is None:
        raise InputError("method flt_code needs a grouping, or related: all or self")
    return settings.relatedness


def round_(
    state: State, engine: Engine, settings: Settings, number: int
) -> tuple[State, list[Row]]:
    """Train the participants and average all slots.

    Args:
        number: rounds completed before this one.
    """
    clients = participants(engine, settings.fraction, number)
    updates, losses = engine.train(state.models_of(clients), clients, number)
    rows = observe(state, updates, losses, clients, engine, settings, number)
    related = _relatedness(engine.federation.clients, settings)
    shares = np.stack([_share(row, engine, settings) for row in related])
    if settings.slots == "stale":
        _average_slots(state, shares, updates, clients)
    else:
        state.models[clients] += updates
        sweep(state.models, torch.from_numpy(shares).to(updates))
    return state, rows


def _share(row: np.ndarray, engine: Engine, settings: Settings) -> np.ndarray:
    """Weight of every client in the mean of one that is related as `row` says."""
    share, related = np.zeros(len(row)), row > 0
    sizes = engine.federation.sizes[: len(row)]
    share[related] = weights(sizes[related], settings.weighting)
    return share


def _average_slots(state: State, shares: np.ndarray, updates: Tensor, clients: list[int]) -> None:
    """Put what was trained into the slots, and the mean of its slots into every model."""
    slots = state.memory["slots"]
    for row, client in enumerate(clients):
        torch.add(state.models[state.grouping[client]], updates[row], out=slots[client])
    first = [state.tree[leaf].clients[0] for leaf in state.leaves]
    torch.matmul(torch.from_numpy(shares[first]).to(slots), slots, out=state.models)


def sweep(models: Tensor, shares: Tensor) -> None:
    """Replace the rows of `models` [clients, P] by their means, each at once, in place."""
    for client, share in enumerate(shares):
        models[client] = share @ models
