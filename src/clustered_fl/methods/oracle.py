"""Oracle: FedAvg within the true groups, which other methods do not know."""

from clustered_fl.engine.training import Engine
from clustered_fl.methods.fedavg import Settings, round_
from clustered_fl.methods.state import State, start

__all__ = ["Settings", "init", "round_"]


def init(engine: Engine, settings: Settings) -> State:
    """The true groups of the federation."""
    federation = engine.federation
    return start(engine, federation.groups[: federation.clients].tolist())
