"""FLT with newcomers and changed clients: repeat clustering once (Algorithm 3, lines 21-28).

New clients and clients whose data changed raise a flag. When more than lambda flags are raised, or
in every tau-th round, the server finds the relatedness again, with fine-tuning, and all clients
participate from the next round on. The paper leaves experiments to future work. Here each of the
two conditions is tested without the other. All flags are raised before one given round, and a
client whose data change is replaced by a newcomer. Nothing changes later, so further repetitions
would give the same result.
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
        again: number of rounds after which newcomers join and all new and changed clients raise
            their flags.
        flags: lambda; clustering is repeated only with more flags than this.
        every: tau; repeat clustering in the next round that is a multiple of tau, whatever the
            number of flags; None to repeat it when flags are raised.
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
    """As in one-shot clustering; InputError if the grouping was not made with `again: true`."""
    if settings.later is None or not settings.later.size:
        raise InputError("method flt_dynamic needs a grouping that was found with `again: true`")
    return one_shot.init(engine, settings)


def round_(state: State, engine: Engine, settings: Settings, number: int) -> Step:
    """Regroup if it is due, train the participants and average related models."""
    if settings.is_due(number, engine.federation.newcomers):
        _regroup(state, engine, settings, number)
    present, related = None, settings.relatedness
    if len(state.grouping) > engine.federation.clients:  # all clients except the replaced ones
        every, related = np.arange(len(engine.federation.train)), settings.later
        present = np.setdiff1d(every, engine.federation.replaces).tolist()
    now = trained(state, engine, settings, number, present)
    rows = observe(state, now, engine, settings)
    average(state, related, now, engine, settings)
    return state, rows


def _regroup(state: State, engine: Engine, settings: Settings, number: int) -> None:
    """One group per distinct row, which starts with the mean of its clients' former models."""
    before, later = state.grouping, settings.later
    state.grouping, state.leaves, models = alike(later), [], []
    for members in state.positions(list(range(len(later)))).values():
        # A group of only newcomers starts with the mean of all models.
        old = [c for c in members if c < len(before)] or list(range(len(before)))
        had = [state.models[before[client]] for client in old]
        models.append(mean_update(had, engine.federation.sizes[old], settings.weighting))
        state.leaves.append(len(state.tree))
        state.tree.append(Node(len(state.tree), None, members, round=number))
    state.models, state.peaks = torch.stack(models), [0.0] * len(models)


def assign_newcomers(state: State, engine: Engine, settings: Settings, number: int) -> list[dict]:
    """Each newcomer's score under its group's model, which it has helped to train."""
    federation = engine.federation
    if len(state.grouping) == federation.clients:
        return one_shot.assign_newcomers(state, engine, settings, number)
    late = range(federation.clients, len(federation.train))
    return [placed(state, engine, client, state.grouping[client]) for client in late]
