"""FedAvg: one model for all clients (McMahan et al. 2017; CFL Algorithm 2 with its criterion)."""

import numpy as np
import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Tensor

from clustered_fl.engine.training import Engine
from clustered_fl.methods.state import (
    RoundSettings,
    State,
    aggregate,
    norms_of_group,
    observe,
    participants,
    rows_of_clients,
    start,
    trained,
    weights,
)
from clustered_fl.options import STRICT
from clustered_fl.records.measurements import Row

BLOCK_BYTES = 2**29
"""Most bytes of updates in memory at once, if only their means are needed."""


@dataclass(frozen=True, config=STRICT)
class Settings(RoundSettings):
    """Settings of FedAvg.

    Attributes:
        eps_1: stop when the norms of all groups' mean updates are below it (CFL eq. 30); None for
            never.
    """

    eps_1: float | None = Field(default=None, gt=0)


def init(engine: Engine, settings: Settings) -> State:
    """All clients in one group."""
    return start(engine, [0] * engine.federation.clients)


def round_(
    state: State, engine: Engine, settings: Settings, number: int
) -> tuple[State, list[Row]]:
    """Train the participants from their group's model and average within each group."""
    rows = _train_and_average(state, engine, settings, number)
    largest = max(value for _, _, _, metric, value in rows if metric == "mean_update_norm")
    state.finished = settings.eps_1 is not None and largest < settings.eps_1
    return state, rows


def _train_and_average(state: State, engine: Engine, settings: Settings, number: int) -> list[Row]:
    """Train the participants, and add their mean update to each group's model, in place.

    Equivalent to `trained`, `observe` and `aggregate`. Unless similarities are measured, clients
    are trained in blocks of `BLOCK_BYTES`, because all updates together would dominate memory.
    """
    if settings.similarities or settings.gradient_every:
        now = trained(state, engine, settings, number)
        rows = observe(state, now, engine, settings)
        aggregate(state, now, engine, settings.weighting)
        return rows
    clients, parts = participants(engine, settings.fraction, number), []
    positions, share, means = state.positions(clients), np.empty(len(clients)), {}
    for own in positions.values():
        sizes = engine.federation.sizes[[clients[row] for row in own]]
        share[own] = weights(sizes, settings.weighting)
    many = max(2, BLOCK_BYTES // (state.models.shape[1] * state.models.element_size()))
    for first in range(0, len(clients), many):
        block = clients[first : first + many]
        updates, losses = engine.train(state.models_of(block), block, number)
        _add(means, state, block, updates, share[first : first + many])
        parts.append((updates.norm(dim=1), losses))
        del updates  # else the next block could not use their memory
    norms, losses = (torch.cat(part) for part in zip(*parts, strict=True))
    rows = rows_of_clients(state, number, clients, norms, losses)
    for group, own in positions.items():
        state.models[group] += means[group]
        found = norms_of_group(means[group], norms[own]).items()
        rows += [(number, "group", state.leaves[group], name, value) for name, value in found]
    return rows


def _add(
    means: dict[int, Tensor], state: State, clients: list[int], updates: Tensor, share: np.ndarray
) -> None:
    """Add weighted updates [n, P] to the sums of their groups, in order of the clients."""
    for client, update, weight in zip(clients, updates, share.tolist(), strict=True):
        group = state.grouping[client]
        if group not in means:
            means[group] = torch.zeros_like(update)
        if weight:
            means[group].add_(update, alpha=weight)


def newcomer_groups(state: State, engine: Engine, settings: Settings) -> list[int]:
    """Newcomers get the single model."""
    return [0] * engine.federation.newcomers
