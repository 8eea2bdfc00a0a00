"""Ditto: every client has a model of its own, which a penalty keeps near the global one.

Li, Hu, Beirami, Smith, "Ditto: Fair and Robust Federated Learning Through Personalization" (ICML
2021), Algorithm 1. In every round a participant trains the global model w for FedAvg, and its own
model v on the same batches by v <- v - lr (gradient(v) + penalty (v - w)), with w as it was sent.
Only the change of w is returned. Clients are tested on their own models.
"""

from dataclasses import replace
from functools import lru_cache

from pydantic import Field
from pydantic.dataclasses import dataclass

from clustered_fl.engine.compiled import Compiled
from clustered_fl.engine.sequential import Sequential
from clustered_fl.engine.training import Engine
from clustered_fl.methods.fine_tuned import apart, together, with_own_models
from clustered_fl.methods.state import RoundSettings, State, Step, aggregate, observe, trained
from clustered_fl.options import STRICT


@dataclass(frozen=True, config=STRICT)
class Settings(RoundSettings):
    """Settings of Ditto.

    Attributes:
        penalty: lambda, the pull of the global model; 0 is local training. The authors choose it
            for each dataset; their scripts for Fashion-MNIST have 1.
    """

    penalty: float = Field(default=1.0, ge=0)


def init(engine: Engine, settings: Settings) -> State:
    """The same random model for all: the global one, and that of every client."""
    return with_own_models(engine)


def round_(state: State, engine: Engine, settings: Settings, number: int) -> Step:
    """Participants train the global model and their own; the changes of the global one average."""
    together(state)
    now = trained(state, engine, settings, number)
    rows = observe(state, now, engine, settings)
    places = [1 + client for client in now.clients]
    own, centres = list(state.models[places]), [state.models[0]] * len(places)
    local = pulled(engine, engine.path, settings.penalty)
    state.models[places] += local.train(own, now.clients, number, centres)[0]
    aggregate(state, now, engine, settings.weighting)
    return state, rows


def before_scores(state: State, engine: Engine, settings: Settings, number: int) -> None:
    """Test every client on its own model."""
    apart(state)


@lru_cache(maxsize=1)
def pulled(engine: Engine, path: str, penalty: float) -> Sequential:
    """Local training that is pulled towards centres given to `train`, wherever clients start.

    FedProx, which every path has, pulls towards the start. The compiled and the sequential path can
    be given other centres; with any other `path`, clients train one by one.
    """
    workload = replace(engine.workload, settings=replace(engine.settings, proximal=penalty))
    workload.network  # noqa: B018  built here, because threads share the random state
    kind = Compiled if path == "compiled" else Sequential
    return kind(workload, engine.workers)
