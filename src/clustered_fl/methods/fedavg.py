"""FedAvg: one model for all clients (McMahan et al. 2017; CFL Algorithm 2, with its stop)."""

from pydantic import Field
from pydantic.dataclasses import dataclass

from clustered_fl.engine.training import Engine
from clustered_fl.methods.state import RoundSettings, Row, State, aggregate, observe, start, trained
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
    """Train the participants from their group's model and average within each group."""
    now = trained(state, engine, settings, number)
    rows = observe(state, now, engine, settings)
    aggregate(state, now, engine, settings.weighting)
    largest = max(value for _, _, _, metric, value in rows if metric == "mean_update_norm")
    state.finished = settings.eps_1 is not None and largest < settings.eps_1
    return state, rows


def newcomer_groups(state: State, engine: Engine, settings: Settings) -> list[int]:
    """There is one group."""
    return [0] * engine.federation.newcomers
