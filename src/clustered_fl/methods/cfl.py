"""CFL: split groups of clients by the cosine similarity of their weight updates.

Sattler, Müller, Samek, "Clustered Federated Learning" (TNNLS 2020), Algorithms 3, 4 and 5. The
decision to split uses a round's updates before averaging, and each half then averages its own
updates, starting from the shared model. This is the order of the authors' public code and of the
recursion in Algorithm 3. (Algorithm 5 as printed averages the undivided group once more, which
costs a round.)
"""

from typing import Annotated

import numpy as np
import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Tensor

from clustered_fl.engine.training import Engine
from clustered_fl.errors import InputError
from clustered_fl.methods import groups as linear
from clustered_fl.methods.state import (
    Node,
    Round,
    RoundSettings,
    State,
    Step,
    aggregate,
    mean_update,
    observe,
    placed,
    start,
    trained,
)
from clustered_fl.options import STRICT
from clustered_fl.randomness import generator

KEPT_BYTES = 2**26
"""Most bytes of updates stored at a split if there are no newcomers to compare with them."""


@dataclass(frozen=True, config=STRICT)
class Settings(RoundSettings):
    """Settings of CFL; either `schedule` or `auto` decides when to split.

    Attributes:
        schedule: rounds after which every group with a positive separation gap is split, as in the
            paper's Figs 9 and 10. The gap needs the true groups, so this reproduces figures; a
            server can only use `auto`. (Splitting the group with the smallest `alpha_cross^max`
            instead would cut true clusters, whose updates cancel at convergence.)
        auto: split by the criteria (30), (31) and (36) instead.
        eps_1: of criterion (30), as a fraction of the group's largest mean update norm so far;
            the paper's rule of thumb is a tenth (section V-B).
        absolute: eps_1 is a norm itself, as in the authors' public code.
        eps_2: of criterion (31), as a multiple of eps_1; the paper suggests 1 to 10.
        gamma_max: of criterion (36); 0 accepts every bipartition.
        min_rounds: rounds between two splits of a group and its ancestors.
        min_size: smaller groups are not split.
        linkage: "single" (the paper) or "complete" (`variant: code`).
        permute: clients hide their updates by a common permutation of parameters.
    """

    schedule: tuple[Annotated[int, Field(ge=1)], ...] = ()
    auto: bool = False
    eps_1: float = Field(default=0.1, ge=0)
    absolute: bool = False
    eps_2: float = Field(default=4.0, ge=0)
    gamma_max: float = Field(default=0.0, ge=0)
    min_rounds: int = Field(default=20, ge=0)
    min_size: int = Field(default=3, ge=2)
    linkage: linear.Linkage = "single"
    permute: bool = False

    def __post_init__(self) -> None:
        if self.fraction < 1.0:
            raise InputError(
                f"CFL compares the updates of all clients: fraction must be 1, not {self.fraction}"
            )
        if self.auto == bool(self.schedule):
            raise InputError(
                "CFL splits by schedule or by auto, not by both or neither; give one of them"
            )


def init(engine: Engine, settings: Settings) -> State:
    """All clients in one group, the root of the parameter tree."""
    return start(engine, [0] * engine.federation.clients)


def round_(state: State, engine: Engine, settings: Settings, number: int) -> Step:
    """Train the participants, split groups if a split is due, and average within groups."""
    now = sent = trained(state, engine, settings, number)
    if settings.permute:
        sent = now._replace(updates=now.updates[:, _permutation(engine, now.updates.shape[1])])
    rows = observe(state, sent, engine, settings)
    for group, positions in state.positions(sent.clients).items():
        if len(positions) >= settings.min_size:
            _split_if_due(state, group, sent.at(positions), engine, settings)
    # Averaging commutes with the permutation, which the clients undo.
    aggregate(state, now, engine, settings.weighting)
    return state, rows


def _permutation(engine: Engine, size: int) -> Tensor:
    """The clients' secret order of parameters, from a seed they exchange (Algorithm 5, init)."""
    order = generator(engine.seed, "parameter permutation").permutation(size)
    return torch.from_numpy(order).to(engine.device)


def _split_if_due(state: State, group: int, own: Round, engine: Engine, settings: Settings) -> None:
    """Split a group with these updates by schedule, or by criteria (30), (31) and (36)."""
    sizes, node = engine.federation.sizes[own.clients], state.tree[state.leaves[group]]
    mean = float(mean_update(own.updates, sizes, settings.weighting).norm())
    state.peaks[group] = max(state.peaks[group], mean)
    if settings.auto:  # split if the group is stationary and some of its clients are not
        eps_1 = settings.eps_1 * (1.0 if settings.absolute else state.peaks[group])
        rested = own.number - node.round >= settings.min_rounds
        restless = float(own.updates.norm(dim=1).max()) > settings.eps_2 * eps_1
        due = rested and mean < eps_1 and restless
    else:
        due = own.number in settings.schedule
    if not due:
        return
    similarity = linear.cosine_similarity(own.updates)
    split = linear.bipartition(similarity, settings.linkage)
    if settings.auto:
        apart = np.sqrt(max(0.0, 1.0 - split.cross_max) / 2.0) > settings.gamma_max
    else:
        truth = engine.federation.groups[own.clients]
        apart = linear.intra_min(similarity, truth) > split.cross_max
    if apart:
        _split(state, group, own, similarity, split, engine.federation.newcomers > 0)


def _split(
    state: State,
    group: int,
    own: Round,
    similarity: np.ndarray,
    split: linear.Bipartition,
    has_newcomers: bool,
) -> None:
    """Replace a group by the two halves of its bipartition and cache what Algorithm 4 needs.

    The updates on the edges take as much memory as those of the round, and are compared with
    newcomers only; without newcomers they are left out above `KEPT_BYTES`.
    """
    pairs = similarity[np.triu_indices_from(similarity, 1)]
    parent = state.tree[state.leaves[group]]
    parent.split_round, parent.cut_similarity = own.number, split.cross_max
    parent.similarity = float(pairs.min()), float(pairs.max())
    state.cached[f"node{parent.id}.model"] = state.models[group].clone()
    state.cached[f"node{parent.id}.similarity"] = torch.from_numpy(similarity)
    kept = has_newcomers or own.updates.numel() * own.updates.element_size() <= KEPT_BYTES
    for half in (split.first, split.second):
        clients = [own.clients[position] for position in half]
        node = Node(
            len(state.tree), parent.id, clients, own.number, updates=len(half) if kept else 0
        )
        state.tree.append(node)
        parent.children.append(node.id)
        if kept:
            state.cached[f"node{node.id}.updates"] = own.updates[half]
    state.leaves[group] = parent.children[0]
    state.leaves.append(parent.children[1])
    for client in node.clients:
        state.grouping[client] = len(state.leaves) - 1
    state.models = torch.cat([state.models, state.models[group : group + 1]])
    state.peaks.append(state.peaks[group])


def assign_newcomers(state: State, engine: Engine, settings: Settings, number: int) -> list[dict]:
    """Place each newcomer in a leaf of the parameter tree by the similarity of its updates.

    Algorithm 4: at each inner node the newcomer trains from the cached model and follows the child
    with the most similar cached update. (Lines 6-7 of the printed algorithm index both children as
    v1; alpha_0 belongs to v0.) Returns entries of `state.placed`.
    """
    found = []
    for client in range(engine.federation.clients, len(engine.federation.train)):
        node = state.tree[0]
        while node.children:
            model = state.cached[f"node{node.id}.model"][None]
            update = engine.train(model, [client], number)[0]
            if settings.permute:
                update = update[:, _permutation(engine, update.shape[1])]
            edges = [state.cached[f"node{child}.updates"] for child in node.children]
            best = [float(torch.cosine_similarity(update, edge).max()) for edge in edges]
            node = state.tree[node.children[int(np.argmax(best))]]
        found.append(placed(state, engine, client, state.leaves.index(node.id)))
    return found
