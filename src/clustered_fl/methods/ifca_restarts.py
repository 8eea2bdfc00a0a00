"""IFCA with several random initialisations, of which only the best is continued.

Ghosh et al. (NeurIPS 2020) prove convergence from a good initialisation and replace it in their
experiments by "random initialization with multiple restarts"; their scripts for synthetic data make
ten (`synthetic/run_p4_m_n.py`). Those are whole runs, and the best is the one that is nearest to
the true parameters, which only a simulation knows. Here all initialisations share the budget: they
train side by side for the first rounds, and the one with the smallest training loss, each client
under its best model, is continued. The traffic of all trainings is counted, but not that of the
choice, for which each client receives all models once more.
"""

from dataclasses import replace

import numpy as np
import torch
from pydantic import Field
from pydantic.dataclasses import dataclass

from clustered_fl.engine.evaluation import training_losses
from clustered_fl.engine.training import Engine
from clustered_fl.errors import InputError
from clustered_fl.methods import ifca
from clustered_fl.methods.state import State, Step
from clustered_fl.options import STRICT
from clustered_fl.records.measurements import Row

before_scores = ifca.before_scores


@dataclass(frozen=True, config=STRICT)
class Settings(ifca.Settings):
    """Settings of IFCA with restarts.

    Attributes:
        restarts: initialisations.
        trial: rounds after which the best is chosen.
    """

    restarts: int = Field(default=10, ge=1)
    trial: int = Field(default=5, ge=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.pretrain or self.random_rounds:
            raise InputError("IFCA's restarts are of random models: no pretrain or random_rounds")


def init(engine: Engine, settings: Settings) -> State:
    """IFCA's state with the first initialisation; all are in memory until one is chosen."""
    state, number = ifca.init(engine, settings), settings.clusters
    models = [engine.initial_model(i) for i in range(settings.restarts * number)]
    state.memory["tried"] = torch.stack(models).unflatten(0, (settings.restarts, number))
    return state


def round_(state: State, engine: Engine, settings: Settings, number: int) -> Step:
    """A round of IFCA, at first of all initialisations; the state is that of the best so far."""
    if "tried" not in state.memory:
        return ifca.round_(state, engine, settings, number)
    tried = state.memory.pop("tried")
    steps = [_step(state, models, engine, settings, number) for models in tried]
    losses = [_loss(found, engine) for found, _ in steps]
    best, rows = steps[int(np.argmin(losses))]
    for found, others in steps:
        rows = rows + ([] if found is best else _trained(others))
    if number + 1 < settings.trial:
        best.memory["tried"] = torch.stack([found.models for found, _ in steps])
    return best, rows


def _step(
    state: State, models: torch.Tensor, engine: Engine, settings: Settings, number: int
) -> Step:
    """A round of IFCA from models [clusters, P] of one initialisation."""
    own = replace(state, models=models.clone(), grouping=list(state.grouping))
    return ifca.round_(own, engine, settings, number)


def _loss(state: State, engine: Engine) -> float:
    """Mean training loss over all images, every client's under the model that fits it best."""
    clients = list(range(engine.federation.clients))
    best = training_losses(engine, state.models, clients).min(1)
    return float(np.average(best, weights=engine.federation.sizes[clients]))


def _trained(rows: list[Row]) -> list[Row]:
    """The rows that count a client's training, and so the bytes that it has sent and received."""
    return [row for row in rows if row[1] == "client" and row[3] == "loss"]
