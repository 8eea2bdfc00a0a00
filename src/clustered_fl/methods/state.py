"""The state of a method between rounds, and the parts of a round that methods share."""

from collections.abc import Sequence
from dataclasses import asdict, field
from dataclasses import dataclass as plain_dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Tensor

from clustered_fl.engine.evaluation import evaluate
from clustered_fl.engine.training import Engine
from clustered_fl.errors import InputError
from clustered_fl.methods import groups as linear
from clustered_fl.options import STRICT
from clustered_fl.randomness import generator
from clustered_fl.records.measurements import Row

Weighting = Literal["samples", "uniform"]
PLAIN, MEMORY = ("leaves", "grouping", "peaks", "finished"), "memory."
"""Fields of a state that a checkpoint stores unchanged; prefix of the tensors in `memory`."""


@dataclass
class Node:
    """A set of clients that share or shared a model: a node of the parameter tree (CFL Fig. 5).

    Attributes:
        id, parent: numbers in order of creation; the root's parent is None.
        round, split_round: when it was created and split; None for a leaf's split.
        cut_similarity: largest similarity across that split.
        updates: number of cached updates on the edge to it (CFL only).
        similarity: least and largest between its clients at its split, None for a leaf.
    """

    id: int
    parent: int | None
    clients: list[int]
    round: int
    split_round: int | None = None
    cut_similarity: float | None = None
    children: list[int] = field(default_factory=list)
    updates: int = 0
    similarity: tuple[float, float] | None = None


@plain_dataclass
class State:
    """Models and grouping after some rounds.

    Attributes:
        models: [groups, P].
        leaves: node of each group; client i's node is `leaves[grouping[i]]`.
        grouping: group of each client.
        tree: all nodes, by their numbers.
        cached: "node<id>.model" [P], "node<id>.updates" [clients, P], "node<id>.similarity".
        peaks: largest mean update norm of each group and its ancestors so far.
        finished: whether the method ends the run before its last round.
        memory: the method's own tensors, which are not part of the record.
    """

    models: Tensor
    leaves: list[int]
    grouping: list[int]
    tree: list[Node]
    cached: dict[str, Tensor] = field(default_factory=dict)
    peaks: list[float] = field(default_factory=list)
    finished: bool = False
    memory: dict[str, Tensor] = field(default_factory=dict)

    def positions(self, clients: list[int]) -> dict[int, list[int]]:
        """Group -> positions in `clients` of its members; groups without members are absent."""
        found: dict[int, list[int]] = {}
        for position, client in enumerate(clients):
            found.setdefault(self.grouping[client], []).append(position)
        return dict(sorted(found.items()))

    def models_of(self, clients: list[int]) -> list[Tensor]:
        """The model [P] of each client's group, as a view."""
        return [self.models[self.grouping[client]] for client in clients]

    def pack(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Tensors and JSON content, for a checkpoint."""
        content = {name: getattr(self, name) for name in PLAIN}
        content["tree"] = [asdict(node) for node in self.tree]
        memory = {f"{MEMORY}{name}": tensor for name, tensor in self.memory.items()}
        return {"models": self.models, **self.cached, **memory}, content

    @classmethod
    def unpack(cls, tensors: dict[str, Tensor], content: dict[str, Any]) -> "State":
        """The inverse of `pack`."""
        cached, memory = dict(tensors), {}
        models, tree = cached.pop("models"), [Node(**node) for node in content["tree"]]
        for name in [name for name in cached if name.startswith(MEMORY)]:
            memory[name.removeprefix(MEMORY)] = cached.pop(name)
        plain = {name: content[name] for name in PLAIN}
        return cls(models=models, tree=tree, cached=cached, memory=memory, **plain)


Step = tuple[State, list[Row]]
"""The state after a round, and the round's measurements."""


class Round(NamedTuple):
    """Trained clients of a round: updates [n, P] from the models of their groups.

    `clients` are ascending, `losses` [n] are means over the last epoch, and `number` is the number
    of completed rounds.
    """

    clients: list[int]
    updates: Tensor
    losses: Tensor
    number: int

    def at(self, positions: Sequence[int]) -> "Round":
        """The part of the clients at these positions, without a copy of the whole round."""
        rows = list(positions)
        if rows == list(range(len(self.clients))):
            return self
        clients = [self.clients[row] for row in rows]
        return Round(clients, self.updates[rows], self.losses[rows], self.number)


@dataclass(frozen=True, config=STRICT)
class RoundSettings:
    """Settings that all methods share.

    Attributes:
        fraction: of the clients that participate in each round, at least one (1.0: all).
        weighting: "samples" (n_i / n, CFL eq. 2) or "uniform" (CFL Algorithm 5, line 13).
        similarities: measure in every round how similar the updates of a group are, for figures
            and claims about CFL's gap. Time and memory grow with the square of the number of
            clients, and all updates are in memory at once.
        newcomers: whenever clients are tested, also test newcomers, each under the model that it
            would get; only for methods with `newcomer_groups`.
        gradient_every: rounds between measurements of the similarities of full gradients, but not
            before the first round; 0 for never.
    """

    fraction: float = Field(default=1.0, gt=0, le=1)
    weighting: Weighting = "samples"
    similarities: bool = False
    newcomers: bool = False
    gradient_every: int = Field(default=0, ge=0)


def start(engine: Engine, grouping: list[int]) -> State:
    """A state with one random model, the same for every group of `grouping` [clients]."""
    groups = max(grouping) + 1
    tree = [Node(group, None, [], round=0) for group in range(groups)]
    for client, group in enumerate(grouping):
        tree[group].clients.append(client)
    models = engine.initial_model().repeat(groups, 1)
    return State(models, list(range(groups)), grouping, tree, peaks=[0.0] * groups)


def participants(
    engine: Engine, fraction: float, round_: int, present: Sequence[int] | None = None
) -> list[int]:
    """Clients of this round, ascending, drawn from those `present`, or from all but newcomers."""
    clients = range(engine.federation.clients) if present is None else present
    if fraction >= 1.0:
        return list(clients)
    return sorted(draw(clients, fraction, generator(engine.seed, "participants", round_)))


def draw(clients: Sequence[int], fraction: float, rng: np.random.Generator) -> list[int]:
    """A fraction of some clients, at least one, each at most once and in any order."""
    count = max(1, round(fraction * len(clients)))
    return rng.choice(clients, count, replace=False).tolist()


def trained(
    state: State,
    engine: Engine,
    settings: RoundSettings,
    number: int,
    present: Sequence[int] | None = None,
) -> Round:
    """Train the participants of round `number`, each from its group's model."""
    clients = participants(engine, settings.fraction, number, present)
    return Round(clients, *engine.train(state.models_of(clients), clients, number), number)


def require_clusters(method: str, clusters: int, clients: int) -> None:
    """Refuse more clusters than clients; InputError naming the method."""
    if clusters > clients:
        raise InputError(f"{method} with {clusters} clusters of {clients} clients; too many")


def weights(sizes: np.ndarray, weighting: Weighting) -> np.ndarray:
    """Averaging weights of the members of one group; they sum to one."""
    raw = sizes.astype(np.float64) if weighting == "samples" else np.ones(len(sizes))
    return raw / raw.sum()


def weighted_mean(vectors: Sequence[Tensor], share: np.ndarray) -> Tensor:
    """Mean of `vectors` [P] by weights that sum to one, without stacking the vectors."""
    mean = torch.zeros_like(vectors[0])
    for vector, weight in zip(vectors, share.tolist(), strict=True):
        if weight:
            mean.add_(vector, alpha=weight)
    return mean


def mean_update(updates: Sequence[Tensor], sizes: np.ndarray, weighting: Weighting) -> Tensor:
    """Weighted mean of the updates [P] of some clients (CFL eq. 2)."""
    return weighted_mean(updates, weights(sizes, weighting))


def aggregate(state: State, round_: Round, engine: Engine, weighting: Weighting) -> None:
    """Add the participants' mean update to each group's model, in place."""
    sizes = engine.federation.sizes[round_.clients]
    for group, rows in state.positions(round_.clients).items():
        own = [round_.updates[row] for row in rows]
        state.models[group] += mean_update(own, sizes[rows], weighting)


def observe(state: State, round_: Round, engine: Engine, settings: RoundSettings) -> list[Row]:
    """Norms (CFL eqs. 30, 31), similarities and, for scoring only, separation gaps of updates."""
    clients, now, rows = round_.clients, round_.number, []
    norms, vectors = round_.updates.norm(dim=1), _compared(state, round_, engine, settings)
    rows += rows_of_clients(state, now, clients, norms, round_.losses)
    for group, own in state.positions(clients).items():
        members = [clients[row] for row in own]
        updates, sizes = [round_.updates[row] for row in own], engine.federation.sizes[members]
        found = norms_of_group(mean_update(updates, sizes, settings.weighting), norms[own])
        for name, each in vectors.items() if len(own) > 1 else ():
            similarity = linear.cosine_similarity(each, own)
            scores = linear.scores(similarity, engine.federation.groups[members])
            found |= {f"{score}_{name}": value for score, value in scores.items()}
        rows += [(now, "group", state.leaves[group], name, value) for name, value in found.items()]
    return rows


def rows_of_clients(
    state: State, now: int, clients: list[int], norms: Tensor, losses: Tensor
) -> list[Row]:
    """Measurements of every participant: norm of its update [n], loss [n], leaf."""
    rows = []
    for client, norm, loss in zip(clients, norms.tolist(), losses.tolist(), strict=True):
        leaf = float(state.leaves[state.grouping[client]])
        found = {"update_norm": norm, "loss": loss, "group": leaf}
        rows += [(now, "client", client, name, value) for name, value in found.items()]
    return rows


def norms_of_group(mean: Tensor, norms: Tensor) -> dict[str, float]:
    """Norms of a group's mean update [P], and of its clients' updates."""
    return {
        "size": float(len(norms)),
        "mean_update_norm": float(mean.norm()),
        "max_update_norm": float(norms.max()),
        "average_update_norm": float(norms.mean()),
    }


def _compared(
    state: State, round_: Round, engine: Engine, settings: RoundSettings
) -> dict[str, Tensor]:
    """Vectors [n, P], by name, whose similarities are measured this round."""
    found = {"update": round_.updates} if settings.similarities else {}
    if settings.gradient_every and round_.number and round_.number % settings.gradient_every == 0:
        found["gradient"] = engine.gradients(state.models_of(round_.clients), round_.clients)
    return found


def placed(state: State, engine: Engine, client: int, group: int) -> dict[str, Any]:
    """A newcomer's place: client, true group, leaf, its clients, and the test score there."""
    leaf, (score,) = state.leaves[group], evaluate(engine, state.models, [client], [group])
    return {
        "client": client,
        "true_group": int(engine.federation.groups[client]),
        "leaf": leaf,
        "clients": state.tree[leaf].clients,
        engine.task.metric: float(score),
    }
