"""CFL: split groups of clients by the cosine similarity of their weight updates.

Sattler, Müller, Samek, "Clustered Federated Learning" (TNNLS 2020), Algorithms 3, 4 and 5. A split
is decided on the updates of a round before they are averaged, and each half averages its own from
the model both shared; that is the order of the authors' public code, and of the recursion in
Algorithm 3. (Algorithm 5 as printed averages once more over the undivided group,
which costs one round.)
"""

import numpy as np
import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Tensor

from clustered_fl.engine.evaluation import evaluate
from clustered_fl.engine.training import Engine
from clustered_fl.errors import InputError
from clustered_fl.methods import groups as linear
from clustered_fl.methods.state import (
    Node,
    RoundSettings,
    Row,
    State,
    aggregate,
    mean_update,
    observe,
    participants,
    start,
)
from clustered_fl.options import STRICT
from clustered_fl.randomness import generator


@dataclass(frozen=True, config=STRICT)
class Settings(RoundSettings):
    """Settings of CFL; either `schedule` or `auto` decides when to split.

    Attributes:
        schedule: rounds after which every group with a positive separation gap is split, as the
            paper's Figs 9 and 10 are drawn. The gap needs the true groups, so this reproduces the
            figures; what a server can do is `auto`. (Splitting the group with the smallest
            `alpha_cross^max` instead tears true clusters: their updates cancel at convergence.)
        auto: split by the criteria (30), (31) and (36) instead.
        eps_1: of criterion (30), as a fraction of the largest mean update norm seen by the group;
            the paper's rule of thumb is a tenth (section V-B).
        eps_2: of criterion (31), as a multiple of eps_1; the paper suggests 1 to 10.
        gamma_max: of criterion (36); 0 accepts every bipartition.
        min_rounds: rounds between two splits of a group and its ancestors.
        min_size: smaller groups are not split.
        linkage: "single" (the paper) or "complete" (`variant: code`).
        permute: let clients hide their updates behind a common permutation of the parameters.
    """

    schedule: tuple[int, ...] = ()
    auto: bool = False
    eps_1: float = Field(default=0.1, ge=0)
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
        if self.auto and self.schedule:
            raise InputError("CFL splits by schedule or by auto, not by both; give one of them")


def init(engine: Engine, settings: Settings) -> State:
    """All clients in one group, the root of the parameter tree."""
    return start(engine.federation, engine, [0] * engine.federation.clients)


def round_(
    state: State, engine: Engine, settings: Settings, number: int
) -> tuple[State, list[Row]]:
    """Train the participants, split groups if it is time, average within each group.

    Args:
        number: rounds completed before this one.
    """
    clients = participants(engine, settings.fraction, number)
    updates, losses = engine.train(state.models_of(clients), clients, number)
    order = _permutation(engine, updates.shape[1]) if settings.permute else None
    sent = updates if order is None else updates[:, order]
    rows = observe(state, sent, losses, clients, engine, settings, number)
    for group in _groups_to_split(state, sent, clients, engine, settings, number):
        _split(state, group, sent, clients, settings, number)
    received = sent if order is None else _restore(sent, order)
    aggregate(state, received, clients, engine, settings.weighting)
    return state, rows


def _permutation(engine: Engine, size: int) -> Tensor:
    """The clients' secret order of parameters, from a seed they exchange (Algorithm 5, init)."""
    order = generator(engine.seed, "parameter permutation").permutation(size)
    return torch.from_numpy(order).to(engine.device)


def _restore(sent: Tensor, order: Tensor) -> Tensor:
    """Undo the permutation, which commutes with averaging."""
    restored = torch.empty_like(sent)
    restored[:, order] = sent
    return restored


def _groups_to_split(
    state: State,
    updates: Tensor,
    clients: list[int],
    engine: Engine,
    settings: Settings,
    number: int,
) -> list[int]:
    """Groups whose time has come, by schedule or by the paper's criteria."""
    chosen = []
    for group, rows in state.positions(clients).items():
        members = [clients[row] for row in rows]
        if len(rows) >= settings.min_size and _is_due(
            state, group, updates[rows], members, engine, settings, number
        ):
            chosen.append(group)
    return chosen


def _is_due(
    state: State,
    group: int,
    updates: Tensor,
    members: list[int],
    engine: Engine,
    settings: Settings,
    number: int,
) -> bool:
    """Whether to split a group now, given the updates of its members."""
    federation = engine.federation
    mean = float(mean_update(updates, federation.sizes[members], settings.weighting).norm())
    state.peaks[group] = max(state.peaks[group], mean)
    if settings.auto:
        return _criteria(state, group, mean, updates, settings, number)
    if number not in settings.schedule:
        return False
    similarity = linear.cosine_similarity(updates.cpu().numpy())
    gap = linear.separation_gap(similarity, federation.groups[members], settings.linkage)
    return gap > 0


def _bipartition(updates: Tensor, settings: Settings) -> linear.Bipartition:
    similarity = linear.cosine_similarity(updates.cpu().numpy())
    return linear.bipartition(similarity, settings.linkage)


def _criteria(
    state: State, group: int, mean: float, updates: Tensor, settings: Settings, number: int
) -> bool:
    """Criteria (30), (31), (36): the group is stationary, its clients are not, and lie apart."""
    eps_1 = settings.eps_1 * state.peaks[group]
    rested = number - state.tree[state.leaves[group]].round >= settings.min_rounds
    restless = float(updates.norm(dim=1).max()) > settings.eps_2 * eps_1
    if not (rested and mean < eps_1 and restless):
        return False
    cross_max = _bipartition(updates, settings).cross_max
    return float(np.sqrt(max(0.0, 1.0 - cross_max) / 2.0)) > settings.gamma_max


def _split(
    state: State, group: int, updates: Tensor, clients: list[int], settings: Settings, number: int
) -> None:
    """Replace a group by the two halves of its bipartition and cache what Algorithm 4 needs."""
    rows = [row for row, client in enumerate(clients) if state.grouping[client] == group]
    split = _bipartition(updates[rows], settings)
    parent = state.tree[state.leaves[group]]
    parent.split_round, parent.cut_similarity = number, split.cross_max
    state.cached[f"node{parent.id}.model"] = state.models[group].clone()
    similarity = linear.cosine_similarity(updates[rows].cpu().numpy())
    state.cached[f"node{parent.id}.similarity"] = torch.from_numpy(similarity)
    halves = [_half(state, parent, updates, rows, part, clients, number) for part in split[:2]]
    state.models = torch.cat([state.models, state.models[group : group + 1]])
    state.peaks.append(state.peaks[group])
    state.leaves[group] = halves[0].id
    state.leaves.append(halves[1].id)
    for client in halves[1].clients:
        state.grouping[client] = len(state.leaves) - 1


def _half(
    state: State,
    parent: Node,
    updates: Tensor,
    rows: list[int],
    part: np.ndarray,
    clients: list[int],
    number: int,
) -> Node:
    """A child of `parent` with the clients at positions `part` of `rows`."""
    own = [rows[position] for position in part]
    node = Node(len(state.tree), parent.id, [clients[row] for row in own], round=number)
    state.tree.append(node)
    parent.children.append(node.id)
    state.cached[f"node{node.id}.updates"] = updates[own].clone()
    return node


def assign_newcomers(state: State, engine: Engine, settings: Settings, number: int) -> list[dict]:
    """Lead each newcomer down the parameter tree to the leaf whose clients move as it does.

    Algorithm 4: at each inner node the newcomer trains from the cached model and follows the child
    that holds the most similar cached update. (Lines 6-7 of the printed algorithm index both
    children as v1; alpha_0 belongs to v0.)

    Returns:
        One entry per newcomer: client, true group, leaf, its clients, and the test score there.
    """
    federation = engine.federation
    found = []
    for client in range(federation.clients, len(federation.train)):
        leaf = _descend(state, engine, settings, client, number)
        score = evaluate(engine, state.models, [client], [state.leaves.index(leaf.id)])
        entry = {"client": client, "true_group": int(federation.groups[client]), "leaf": leaf.id}
        found.append(entry | {"clients": leaf.clients, engine.task.metric: float(score[0])})
    return found


def _descend(state: State, engine: Engine, settings: Settings, client: int, number: int) -> Node:
    node = state.tree[0]
    while node.children:
        model = state.cached[f"node{node.id}.model"][None]
        update = engine.train(model, [client], number)[0]
        if settings.permute:
            update = update[:, _permutation(engine, update.shape[1])]
        edges = [state.cached[f"node{child}.updates"] for child in node.children]
        best = [_largest_cosine(update[0], edge) for edge in edges]
        node = state.tree[node.children[int(np.argmax(best))]]
    return node


def _largest_cosine(update: Tensor, edge: Tensor) -> float:
    return float(torch.nn.functional.cosine_similarity(update[None], edge, dim=1).max())
