"""FedSEM: k-means on the clients' models in every round (Xie et al. 2020), as FLT compares with it.

In every round the models of all clients are clustered by their Euclidean distance, and the models
of a cluster are averaged. The first k-means tries several starts, later ones go on from the centres
before. Clients that did not participate stand where their cluster's model is, so that in the first
round they are all in one place and become one cluster: a real weakness of partial participation,
kept here (FLT's `cluster.py`). The published FeSEM moves single clients to their nearest centre.
"""

import warnings

import numpy as np
import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor

from clustered_fl.engine.training import Engine
from clustered_fl.errors import InputError
from clustered_fl.methods.state import (
    RoundSettings,
    Row,
    State,
    observe,
    participants,
    start,
    weighted_mean,
)
from clustered_fl.options import STRICT
from clustered_fl.randomness import generator

COLUMNS = 2**17
"""Parameters that are multiplied in double precision at a time."""


@dataclass(frozen=True, config=STRICT)
class Settings(RoundSettings):
    """Settings of FedSEM.

    Attributes:
        clusters: their number, which FedSEM must be told.
        restarts: starts of the first k-means.
        stale: a client that did not participate counts with the last model that it has uploaded,
            not with its cluster's (FLT's code before March 2021).
    """

    clusters: int = Field(ge=1)
    restarts: int = Field(default=20, ge=1)
    stale: bool = False


def init(engine: Engine, settings: Settings) -> State:
    """One random model for all clusters; the first k-means tells the clients apart.

    Raises:
        InputError: if there are more clusters than clients.
    """
    clients = engine.federation.clients
    if settings.clusters > clients:
        raise InputError(f"FedSEM with {settings.clusters} clusters of {clients} clients; too many")
    grouping = [min(client, settings.clusters - 1) for client in range(clients)]
    state = start(engine.federation, engine, grouping)
    state.grouping = [0] * clients  # one model is one place, however many clusters there will be
    if settings.stale:
        state.memory["slots"] = engine.initial_model().repeat(clients, 1)
        state.memory["sampled"] = torch.zeros(clients, dtype=torch.bool)
    return state


def round_(
    state: State, engine: Engine, settings: Settings, number: int
) -> tuple[State, list[Row]]:
    """Train the participants, cluster all clients by their models, average within the clusters.

    Args:
        number: rounds completed before this one.
    """
    clients = participants(engine, settings.fraction, number)
    trained, losses = engine.train(state.models_of(clients), clients, number)
    rows = observe(state, trained, losses, clients, engine, settings, number)
    for row, model in enumerate(state.models_of(clients)):
        trained[row] += model
    places, at = _places(state, trained, clients, settings)
    seed = int(generator(engine.seed, "k-means", number).integers(2**31))
    labels = _cluster(state, places, np.bincount(at, minlength=len(places)), settings, seed)
    state.grouping = labels[at].tolist()
    _average(state, places, at, engine.federation.sizes[: len(at)])
    return state, rows


def _places(
    state: State, trained: Tensor, clients: list[int], settings: Settings
) -> tuple[list[Tensor], np.ndarray]:
    """The distinct models [P] that clients hold, and which of them each client holds."""
    if settings.stale:
        state.memory["slots"][clients] = trained
        state.memory["sampled"][clients] = True
        at, never = np.arange(len(state.grouping)), ~state.memory["sampled"].cpu().numpy()
        at[never] = at[never][:1]  # all with the initial model
        return list(state.memory["slots"]), at
    at = np.array(state.grouping)
    at[clients] = len(state.models) + np.arange(len(clients))
    return [*state.models, *trained], at


def _cluster(
    state: State, places: list[Tensor], holders: np.ndarray, settings: Settings, seed: int
) -> np.ndarray:
    """Cluster of every place; `holders` clients are at each, and those without any do not count."""
    centres = list(state.memory["centres"]) if "centres" in state.memory else []
    points = coordinates([*places, *centres])
    first = points[len(places) :] if centres else "k-means++"
    means = KMeans(
        settings.clusters,
        init=first,
        n_init=1 if centres else settings.restarts,
        random_state=seed,
    )
    with warnings.catch_warnings():
        # Identical clients make fewer clusters than asked for; the others keep their models.
        warnings.simplefilter("ignore", ConvergenceWarning)
        held = np.flatnonzero(holders)
        held = np.resize(held, max(len(held), settings.clusters))  # k-means wants so many points
        weight = holders[held] / np.bincount(held)[held]
        means.fit(points[held], sample_weight=weight)
    labels = np.zeros(len(places), dtype=np.int64)
    labels[held] = means.labels_
    state.memory["centres"] = _centres(state, places, labels, holders, centres)
    return labels


def coordinates(vectors: list[Tensor]) -> np.ndarray:
    """Points with the distances of `vectors` [P] in as many dimensions as there are vectors.

    k-means sees distances only, and models have millions of parameters. Principal coordinates of
    the centred Gram matrix keep them exactly; the vectors are never there in double precision.
    """
    n = len(vectors)
    gram = torch.zeros(n, n, dtype=torch.float64)
    for first in range(0, len(vectors[0]), COLUMNS):
        part = torch.stack([vector[first : first + COLUMNS] for vector in vectors]).double()
        part -= part.mean(0)
        gram += (part @ part.t()).cpu()
    values, directions = np.linalg.eigh(gram.numpy())
    return directions * np.sqrt(np.clip(values, 0, None))


def _centres(
    state: State,
    places: list[Tensor],
    labels: np.ndarray,
    holders: np.ndarray,
    centres: list[Tensor],
) -> Tensor:
    """Mean model of every cluster's clients [clusters, P], from which the next k-means goes on."""
    means = torch.empty_like(state.models)
    for cluster in range(len(means)):
        share = np.where(labels == cluster, holders, 0)
        if share.any():
            means[cluster] = weighted_mean(places, share / share.sum())
        else:
            means[cluster] = centres[cluster] if centres else state.models[cluster]
    return means


def _average(state: State, places: list[Tensor], at: np.ndarray, sizes: np.ndarray) -> None:
    """Give every cluster the mean of its clients' models, weighted by their samples."""
    grouping, models = np.array(state.grouping), torch.empty_like(state.models)
    for cluster in range(len(models)):
        members = grouping == cluster
        share = np.bincount(at[members], weights=sizes[members], minlength=len(places))
        models[cluster] = (
            weighted_mean(places, share / share.sum()) if members.any() else state.models[cluster]
        )
    state.models = models
