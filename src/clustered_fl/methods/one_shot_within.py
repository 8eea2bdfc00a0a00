"""One-shot clustering with participants drawn within each cluster.

REPA's text says that "clients selected for training" take part, but not how they are selected. The
authors' follow-up code trains each cluster separately, so the same fraction of every cluster takes
part in each round. `one_shot` draws that fraction of all clients, so a cluster's number of
participants varies. Everything else is as in `one_shot`.
"""

from pydantic.dataclasses import dataclass

from clustered_fl.engine.training import Engine
from clustered_fl.methods import one_shot
from clustered_fl.methods.state import Round, State, Step, draw, observe
from clustered_fl.options import STRICT
from clustered_fl.randomness import generator

init = one_shot.init
newcomer_groups = one_shot.newcomer_groups
assign_newcomers = one_shot.assign_newcomers


@dataclass(frozen=True, config=STRICT)
class Settings(one_shot.Settings):
    """Settings of one-shot clustering; `fraction` is of each cluster, at least one client."""


def round_(state: State, engine: Engine, settings: Settings, number: int) -> Step:
    """Train participants of every cluster from its model and average related models."""
    clients = drawn(state, engine, settings.fraction, number)
    now = Round(clients, *engine.train(state.models_of(clients), clients, number), number)
    rows = observe(state, now, engine, settings)
    one_shot.average(state, settings.relatedness, now, engine, settings)
    return state, rows


def drawn(state: State, engine: Engine, fraction: float, number: int) -> list[int]:
    """Clients of this round, ascending: a fraction of each cluster, at least one client of each."""
    rng, found = generator(engine.seed, "participants", number), []
    for cluster in state.positions(list(range(engine.federation.clients))).values():
        found += draw(cluster, fraction, rng)
    return sorted(found)
