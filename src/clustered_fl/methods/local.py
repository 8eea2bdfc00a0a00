"""Local: every client trains alone, from one common random model."""

from clustered_fl.engine.training import Engine
from clustered_fl.methods.fedavg import Settings, round_
from clustered_fl.methods.state import State, start

__all__ = ["Settings", "init", "round_"]


def init(engine: Engine, settings: Settings) -> State:
    """Each client in its own group."""
    return start(engine, list(range(engine.federation.clients)))
