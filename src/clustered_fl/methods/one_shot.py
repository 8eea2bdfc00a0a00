"""One-shot clustering: who averages with whom is known before the first round.

FLT (Jamali-Rad, Abdizadeh, Singh, TNNLS 2022), Algorithm 3; PCA+kM+HC and every other way to relate
clients once differ in the relatedness only, which `clustered_fl.groupings` computes. Case I (a full
matrix) and case II (disjoint clusters) are one rule here: the new model of a client is the mean of
the models that the clients related to it have trained, weighted by their samples. Clients that are
related to the same ones have the same model, so there is one model per distinct row.

Two printed errors are corrected: the weights of line 17 and of line 19 sum to far less than one
(`theory.averaging_code` shows what that does), and as in Algorithm 1 only participants count.
"""

import numpy as np
import torch
from pydantic.dataclasses import dataclass
from torch import Tensor

from clustered_fl.engine.evaluation import evaluate
from clustered_fl.engine.training import Engine
from clustered_fl.errors import InputError
from clustered_fl.methods.state import (
    RoundSettings,
    Row,
    State,
    observe,
    participants,
    start,
    weights,
)
from clustered_fl.options import STRICT

COLUMNS = 2**14
"""Parameters that are averaged at a time, so that models and what follows are not there twice."""


@dataclass(frozen=True, config=STRICT)
class Settings(RoundSettings):
    """Settings of one-shot clustering.

    Attributes:
        relatedness: [clients, clients] of 0 and 1; row i says whose models client i averages.
        placed: for each newcomer the client whose model it gets.
        later: relatedness [n, n] of all clients after newcomers have joined.
    """

    relatedness: np.ndarray | None = None
    placed: np.ndarray | None = None
    later: np.ndarray | None = None


def init(engine: Engine, settings: Settings) -> State:
    """One group per distinct row of the relatedness, in order of their first clients.

    Raises:
        InputError: if there is no relatedness.
    """
    if settings.relatedness is None:
        raise InputError("method one_shot needs a grouping; name one with `grouping:` in the run")
    return start(engine.federation, engine, alike(settings.relatedness))


def alike(relatedness: np.ndarray) -> list[int]:
    """Group of each client: equal rows are one group; numbered by first appearance."""
    numbers: dict[bytes, int] = {}
    return [numbers.setdefault(row.tobytes(), len(numbers)) for row in relatedness]


def round_(
    state: State, engine: Engine, settings: Settings, number: int
) -> tuple[State, list[Row]]:
    """Train the participants from their models and average what is related.

    Args:
        number: rounds completed before this one.
    """
    clients = participants(engine, settings.fraction, number)
    updates, losses = engine.train(state.models_of(clients), clients, number)
    rows = observe(state, updates, losses, clients, engine, settings, number)
    average(state, settings.relatedness, updates, clients, engine, settings)
    return state, rows


def average(
    state: State,
    relatedness: np.ndarray,
    updates: Tensor,
    clients: list[int],
    engine: Engine,
    settings: RoundSettings,
) -> None:
    """Replace models by weighted means of what related participants have trained, in place.

    Groups without related participants stay as they are.

    Args:
        relatedness: of all clients.
        updates: [n, P], of the participants `clients`.
    """
    shares = _shares(state, relatedness, engine.federation.sizes[clients], clients, settings)
    if not shares:
        return
    own = [state.grouping[client] for client in clients]
    share = torch.from_numpy(np.stack(list(shares.values()))).to(updates)
    groups = list(shares)
    for first in range(0, updates.shape[1], COLUMNS):
        part = slice(first, first + COLUMNS)
        state.models[groups, part] = share @ (state.models[own, part] + updates[:, part])


def _shares(
    state: State,
    relatedness: np.ndarray,
    sizes: np.ndarray,
    clients: list[int],
    settings: RoundSettings,
) -> dict[int, np.ndarray]:
    """Weight of each participant in the mean of each group that has related participants."""
    found = {}
    for group, leaf in enumerate(state.leaves):
        related = relatedness[state.tree[leaf].clients[0]][clients] > 0
        if related.any():
            found[group] = np.zeros(len(clients))
            found[group][related] = weights(sizes[related], settings.weighting)
    return found


def newcomer_groups(state: State, engine: Engine, settings: Settings) -> list[int]:
    """Group of each newcomer: that of the client at which the grouping has placed it."""
    return [state.grouping[host] for host in settings.placed]


def assign_newcomers(state: State, engine: Engine, settings: Settings, number: int) -> list[dict]:
    """Each newcomer's score under the model of the cluster whose mean signature is nearest.

    FLT section III-B4, "another possibility to handle newcomer clients"; the paper leaves it to
    future work. The grouping has placed them; nobody trains.

    Returns:
        One entry per newcomer: client, true group, leaf, its clients, and the test score there.
    """
    federation, found = engine.federation, []
    for newcomer, host in enumerate(settings.placed if settings.placed is not None else []):
        client, leaf = federation.clients + newcomer, state.leaves[state.grouping[host]]
        score = evaluate(engine, state.models, [client], [state.grouping[host]])
        entry = {"client": client, "true_group": int(federation.groups[client]), "leaf": leaf}
        found.append(
            entry | {"clients": state.tree[leaf].clients, engine.task.metric: float(score[0])}
        )
    return found
