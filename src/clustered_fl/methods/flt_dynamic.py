"""FLT with newcomers and changed clients: clustering is repeated once (Algorithm 3, lines 21-28).

Clients whose data changed and clients that are new raise a flag; when enough have (lambda), or in
every tau-th round, the server finds the relatedness again, in fine-tune mode, and all clients that
are there take part from the next round. The paper leaves it to future work. Here all flags are
raised before one given round, and a client whose data change leaves as it was and joins as a
newcomer. Nothing changes later, so that repetitions after the first would find the same.
"""

import numpy as np
import torch
from pydantic import Field
from pydantic.dataclasses import dataclass

from clustered_fl.engine.training import Engine
from clustered_fl.errors import InputError
from clustered_fl.methods import one_shot
from clustered_fl.methods.one_shot import alike, average
from clustered_fl.methods.state import Node, State, Step, mean_update, observe, placed, trained
from clustered_fl.options import STRICT


@dataclass(frozen=True, config=STRICT)
class Settings(one_shot.Settings):
    """Settings of dynamic clustering.

    Attributes:
        again: rounds after which the newcomers are there and all flags are raised.
        flags: lambda; with no more flags than that clustering is not repeated.
        every: tau; clustering is repeated in the first multiple of it from then on, however few
            flags are raised; None: when they are raised.
    """

    again: int = Field(default=0, ge=0)
    flags: int = Field(default=0, ge=0)
    every: int | None = Field(default=None, ge=1)

    def is_due(self, number: int, flags: int) -> bool:
        """Whether clustering is repeated before round `number` (Algorithm 3, line 23)."""
        if self.every is None:
            return number == self.again and flags > self.flags
        return number == -(-self.again // self.every) * self.every


def init(engine: Engine, settings: Settings) -> State:
    """As one-shot clustering; an InputError if the grouping was not found with `again: true`."""
    if settings.later is None or not settings.later.size:
        raise InputError("method flt_dynamic needs a grouping that was found with `again: true`")
    return one_shot.init(engine, settings)


def round_(state: State, engine: Engine, settings: Settings, number: int) -> Step:
    """Train the participants and average what is related; regroup before it if it is time."""
    if settings.is_due(number, engine.federation.newcomers):
        _regroup(state, engine, settings.later, number)
    present, related = None, settings.relatedness
    if len(state.grouping) > engine.federation.clients:  # all clients but those that were replaced
        every, related = np.arange(len(engine.federation.train)), settings.later
        present = np.setdiff1d(every, engine.federation.replaces).tolist()
    now = trained(state, engine, settings, number, present)
    rows = observe(state, now, engine, settings)
    average(state, related, now, engine, settings)
    return state, rows


def _regroup(state: State, engine: Engine, later: np.ndarray, number: int) -> None:
    """One group per distinct row; it begins with the mean of the models that its clients had."""
    before = state.grouping
    state.grouping, state.leaves, models = alike(later), [], []
    for members in state.positions(list(range(len(later)))).values():
        # A group of newcomers only begins with the mean of all models.
        old = [c for c in members if c < len(before)] or list(range(len(before)))
        had = [state.models[before[client]] for client in old]
        models.append(mean_update(had, engine.federation.sizes[old], "samples"))
        state.leaves.append(len(state.tree))
        state.tree.append(Node(len(state.tree), None, members, round=number))
    state.models, state.peaks = torch.stack(models), [0.0] * len(models)


def assign_newcomers(state: State, engine: Engine, settings: Settings, number: int) -> list[dict]:
    """Each newcomer's score under the model that it has trained since it joined."""
    federation = engine.federation
    if len(state.grouping) == federation.clients:
        return one_shot.assign_newcomers(state, engine, settings, number)
    late = range(federation.clients, len(federation.train))
    return [placed(state, engine, client, state.grouping[client]) for client in late]
