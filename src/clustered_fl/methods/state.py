"""What every method carries from round to round, and the part of a round that all share."""

from collections.abc import Sequence
from dataclasses import asdict, field
from dataclasses import dataclass as plain_dataclass
from typing import Any, Literal

import numpy as np
import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Tensor

from clustered_fl.data.federation import Federation
from clustered_fl.engine.training import Engine
from clustered_fl.methods import groups as linear
from clustered_fl.options import STRICT
from clustered_fl.randomness import generator

Weighting = Literal["samples", "uniform"]

Row = tuple[int, str, int, str, float]
"""One measurement: round, scope ("run", "group" or "client"), member, metric, value."""

MEMORY = "memory."


@plain_dataclass
class Node:
    """A set of clients that once shared a model: a node of the parameter tree (CFL Fig. 5).

    Attributes:
        id, parent: numbers in order of creation; the root has no parent.
        clients: who belongs to it.
        round: when it was created.
        split_round: when it was split, None for a leaf.
        cut_similarity: largest similarity across that split.
        children: ids, empty for a leaf.
    """

    id: int
    parent: int | None
    clients: list[int]
    round: int
    split_round: int | None = None
    cut_similarity: float | None = None
    children: list[int] = field(default_factory=list)


@plain_dataclass
class State:
    """Models and grouping after some rounds.

    Attributes:
        models: [groups, P].
        leaves: node of the parameter tree for each group, so `leaves[grouping[i]]` is client i's.
        grouping: group of each client.
        tree: all nodes, by id.
        cached: "node<id>.model" [P], "node<id>.updates" [clients, P], "node<id>.similarity".
        peaks: largest mean update norm seen by each group or its ancestors.
        finished: whether the method has stopped by its own rule.
        memory: what the method itself must remember; it is no part of the record.
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
        """Where in `clients` the members of each group stand; groups without any are absent."""
        found: dict[int, list[int]] = {}
        for position, client in enumerate(clients):
            found.setdefault(self.grouping[client], []).append(position)
        return dict(sorted(found.items()))

    def models_of(self, clients: list[int]) -> list[Tensor]:
        """The model [P] of each client's group; a view, no copy."""
        return [self.models[self.grouping[client]] for client in clients]

    def pack(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Tensors and JSON content, for a checkpoint."""
        content = {
            "leaves": self.leaves,
            "grouping": self.grouping,
            "tree": [asdict(node) for node in self.tree],
            "peaks": self.peaks,
            "finished": self.finished,
        }
        memory = {f"{MEMORY}{name}": tensor for name, tensor in self.memory.items()}
        return {"models": self.models, **self.cached, **memory}, content

    @classmethod
    def unpack(cls, tensors: dict[str, Tensor], content: dict[str, Any]) -> "State":
        """The inverse of `pack`."""
        cached = {name: tensor for name, tensor in tensors.items() if name != "models"}
        kept = [name for name in cached if name.startswith(MEMORY)]
        memory = {name.removeprefix(MEMORY): cached.pop(name) for name in kept}
        tree = [Node(**node) for node in content["tree"]]
        rest = {name: content[name] for name in ("leaves", "grouping", "peaks", "finished")}
        return cls(models=tensors["models"], tree=tree, cached=cached, memory=memory, **rest)


@dataclass(frozen=True, config=STRICT)
class RoundSettings:
    """The part of a method's settings that is the same for all.

    Attributes:
        fraction: of each round's clients that participate, at least one (1.0: all).
        weighting: "samples" (n_i / n, CFL eq. 2) or "uniform" (CFL Algorithm 5, line 13).
        similarities: measure in every round how similar the updates of a group are (CFL's gap);
            it takes time and memory that grow with the clients and their parameters.
        newcomers: test those who join later too whenever clients are tested, each under the model
            that it would get; only for methods with `newcomer_groups`.
        gradient_every: measure the similarities of full gradients too, every so many rounds and
            never before the first; 0: never.
    """

    fraction: float = Field(default=1.0, gt=0, le=1)
    weighting: Weighting = "samples"
    similarities: bool = True
    newcomers: bool = False
    gradient_every: int = Field(default=0, ge=0)


def start(federation: Federation, engine: Engine, grouping: list[int]) -> State:
    """One random model, the same for every group of `grouping` [clients]."""
    groups = max(grouping) + 1
    tree = [Node(group, None, [], round=0) for group in range(groups)]
    for client, group in enumerate(grouping):
        tree[group].clients.append(client)
    models = engine.initial_model().repeat(groups, 1)
    return State(models, list(range(groups)), grouping, tree, peaks=[0.0] * groups)


def participants(
    engine: Engine, fraction: float, round_: int, present: Sequence[int] | None = None
) -> list[int]:
    """Clients of this round, drawn without replacement, ascending.

    Args:
        present: who is there; None for all but newcomers.
    """
    clients = range(engine.federation.clients) if present is None else present
    if fraction >= 1.0:
        return list(clients)
    count = max(1, round(fraction * len(clients)))
    rng = generator(engine.seed, "participants", round_)
    return sorted(rng.choice(list(clients), count, replace=False).tolist())


def weights(sizes: np.ndarray, weighting: Weighting) -> np.ndarray:
    """Averaging weights of the members of one group; they sum to one."""
    raw = sizes.astype(np.float64) if weighting == "samples" else np.ones(len(sizes))
    return raw / raw.sum()


def weighted_mean(vectors: Sequence[Tensor], share: np.ndarray) -> Tensor:
    """Mean of `vectors` [P] by weights that sum to one; the vectors are not copied together."""
    mean = torch.zeros_like(vectors[0])
    for vector, weight in zip(vectors, share.tolist(), strict=True):
        if weight:
            mean.add_(vector, alpha=weight)
    return mean


def mean_update(updates: Sequence[Tensor], sizes: np.ndarray, weighting: Weighting) -> Tensor:
    """Weighted mean of the updates [P] of some clients (CFL eq. 2)."""
    return weighted_mean(updates, weights(sizes, weighting))


def aggregate(
    state: State, updates: Tensor, clients: list[int], engine: Engine, weighting: Weighting
) -> None:
    """Add to each group's model the mean update of its participants, in place."""
    sizes = engine.federation.sizes[clients]
    for group, rows in state.positions(clients).items():
        own = [updates[row] for row in rows]
        state.models[group] += mean_update(own, sizes[rows], weighting)


def observe(
    state: State,
    updates: Tensor,
    losses: Tensor,
    clients: list[int],
    engine: Engine,
    settings: RoundSettings,
    round_: int,
) -> list[Row]:
    """Norms, similarities and separation gaps of one round's updates, per client and per group.

    Measured on updates that start from the models after `round_` completed rounds. The gap uses the
    true groups: it is for scoring, no method sees it.
    """
    norms = updates.norm(dim=1)
    rows: list[Row] = []
    for client, norm, loss in zip(clients, norms.tolist(), losses.tolist(), strict=True):
        rows += [
            (round_, "client", client, "update_norm", norm),
            (round_, "client", client, "loss", loss),
        ]
        rows.append(
            (round_, "client", client, "group", float(state.leaves[state.grouping[client]]))
        )
    gradients = None
    if settings.gradient_every and round_ and round_ % settings.gradient_every == 0:
        gradients = engine.gradients(state.models_of(clients), clients)
    for group, own in state.positions(clients).items():
        members, leaf = [clients[row] for row in own], state.leaves[group]
        sizes = engine.federation.sizes[members]
        mean = mean_update([updates[row] for row in own], sizes, settings.weighting)
        found = _group_metrics(mean, norms[own])
        if settings.similarities:
            found |= _similarity_metrics(updates[own], members, engine.federation, "update")
        if gradients is not None:
            found |= _similarity_metrics(gradients[own], members, engine.federation, "gradient")
        rows += [(round_, "group", leaf, name, value) for name, value in found.items()]
    return rows


def _group_metrics(mean: Tensor, norms: Tensor) -> dict[str, float]:
    """The two norm criteria (CFL eqs. 30, 31) of one group's mean update and updates."""
    return {
        "size": float(len(norms)),
        "mean_update_norm": float(mean.norm()),
        "max_update_norm": float(norms.max()),
        "average_update_norm": float(norms.mean()),
    }


def _similarity_metrics(
    vectors: Tensor, members: list[int], federation: Federation, name: str
) -> dict[str, float]:
    if len(members) < 2:
        return {}
    similarity = linear.cosine_similarity(vectors.cpu().numpy())
    true = federation.groups[members]
    split = linear.bipartition(similarity)
    return {
        f"gap_{name}": linear.intra_min(similarity, true) - split.cross_max,
        f"cut_{name}": split.cross_max,
        f"intra_{name}": linear.intra_min(similarity, true),
        f"correct_{name}": float(linear.is_correct(split, true)),
    }
