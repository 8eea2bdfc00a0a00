"""FedAvg: one model for all clients (McMahan et al. 2017; CFL Algorithm 2, with its stop)."""

from pydantic import Field
from pydantic.dataclasses import dataclass

from clustered_fl.engine.training import Engine
from clustered_fl.methods.state import (
    RoundSettings,
    Row,
    State,
    aggregate,
    observe,
    participants,
    start,
)
from clustered_fl.options import STRICT


@dataclass(frozen=True, config=STRICT)
class Settings(RoundSettings):
    """Settings of FedAvg.

    Attributes:
        eps_1: stop when the norm of every group's mean update falls below it (CFL eq. 30); None:
            never.
    """

    eps_1: float | None = Field(default=None, gt=0)


def init(engine: Engine, settings: Settings) -> State:
    """All clients in one group."""
    return start(engine.federation, engine, [0] * engine.federation.clients)


def round_(
    state: State, engine: Engine, settings: Settings, number: int
) -> tuple[State, list[Row]]:
    """Train the participants from their group's model and average within each group.

    Args:
        number: rounds completed before this one.
    """
    clients = participants(engine, settings.fraction, number)
    updates, losses = engine.train(state.models_of(clients), clients, number)
    rows = observe(state, updates, losses, clients, engine, settings, number)
    aggregate(state, updates, clients, engine, settings.weighting)
    state.finished = settings.eps_1 is not None and _largest_mean_norm(rows) < settings.eps_1
    return state, rows


def newcomer_groups(state: State, engine: Engine, settings: Settings) -> list[int]:
    """There is one group."""
    return [0] * engine.federation.newcomers


def _largest_mean_norm(rows: list[Row]) -> float:
    return max(value for _, _, _, metric, value in rows if metric == "mean_update_norm")
