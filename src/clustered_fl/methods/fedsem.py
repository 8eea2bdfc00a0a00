"""FedSEM: k-means on the clients' models in every round (Xie et al. 2020), as in FLT's comparison.

In every round the models of all clients are clustered by Euclidean distance, and the models of a
cluster are averaged. The first k-means uses several restarts; later ones start from the previous
centres. A client that did not participate is represented by its cluster's model. In the first round
all such clients therefore have the same model and form one cluster, a weakness of partial
participation that is kept here (FLT's `cluster.py`). The published FeSEM moves single clients to
their nearest centre.
"""

import warnings
from collections.abc import Sequence

import numpy as np
import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor

from clustered_fl.engine.inner_products import gram
from clustered_fl.engine.lloyd import lloyd
from clustered_fl.engine.training import Engine
from clustered_fl.methods.state import (
    Round,
    RoundSettings,
    State,
    Step,
    observe,
    require_clusters,
    start,
    trained,
    weighted_mean,
)
from clustered_fl.options import STRICT
from clustered_fl.randomness import generator


@dataclass(frozen=True, config=STRICT)
class Settings(RoundSettings):
    """Settings of FedSEM.

    Attributes:
        clusters: number of clusters, which FedSEM must be given.
        restarts: number of restarts of the first k-means.
        stale: represent a client that did not participate by its last uploaded model instead of
            its cluster's (FLT's code before March 2021).
    """

    clusters: int = Field(ge=1)
    restarts: int = Field(default=20, ge=1)
    stale: bool = False


def init(engine: Engine, settings: Settings) -> State:
    """One random model for all clusters; the first k-means separates the clients.

    Raises: InputError if there are more clusters than clients.
    """
    clients = engine.federation.clients
    require_clusters("FedSEM", settings.clusters, clients)
    grouping = [min(client, settings.clusters - 1) for client in range(clients)]
    state = start(engine, grouping)
    state.grouping = [0] * clients  # one model until the first k-means
    if settings.stale:
        state.memory["slots"] = engine.initial_model().repeat(clients, 1)
        state.memory["sampled"] = torch.zeros(clients, dtype=torch.bool)
    return state


def round_(state: State, engine: Engine, settings: Settings, number: int) -> Step:
    """Train the participants, cluster all clients by their models, average within the clusters."""
    now = trained(state, engine, settings, number)
    rows = observe(state, now, engine, settings)
    for model, update in zip(state.models_of(now.clients), now.updates, strict=True):
        update += model
    places, at = _places(state, now, settings)
    holders = np.bincount(at, minlength=len(places))
    sizes = engine.federation.sizes[: len(at)]
    averaged = np.bincount(at, sizes, len(places)) if settings.weighting == "samples" else holders
    seed = int(generator(engine.seed, "k-means", number).integers(2**31))
    centres = state.memory.get("centres")
    labels = _cluster(places, holders, centres, settings, seed)
    before = state.models if centres is None else centres
    state.memory["centres"] = _means(places, labels, holders, before)
    state.models = _means(places, labels, averaged, state.models)
    state.grouping = labels[at].tolist()
    return state, rows


def _places(state: State, now: Round, settings: Settings) -> tuple[Sequence[Tensor], np.ndarray]:
    """The distinct models [P] after training, and which of them each client holds.

    Stale models are one matrix [clients, P].
    """
    if settings.stale:
        state.memory["slots"][now.clients] = now.updates
        state.memory["sampled"][now.clients] = True
        at, never = np.arange(len(state.grouping)), ~state.memory["sampled"].cpu().numpy()
        at[never] = at[never][:1]  # they all hold the initial model
        return state.memory["slots"], at
    at = np.array(state.grouping)
    at[now.clients] = len(state.models) + np.arange(len(now.clients))
    return [*state.models, *now.updates], at


def _cluster(
    places: Sequence[Tensor],
    holders: np.ndarray,
    centres: Tensor | None,
    settings: Settings,
    seed: int,
) -> np.ndarray:
    """Cluster of each distinct model; those of models that no client holds are not used.

    In the first round, and where a cluster becomes empty, scikit-learn restarts and moves centres.
    """
    if centres is not None and isinstance(places, Tensor):
        found = lloyd(places, holders, centres)
        if found is not None:
            return found
    points = coordinates([*places, *([] if centres is None else centres)])
    cold = {"init": "k-means++", "n_init": settings.restarts}
    warm = {"init": points[len(places) :], "n_init": 1}
    means = KMeans(settings.clusters, random_state=seed, **(cold if centres is None else warm))
    held = np.flatnonzero(holders)
    held = np.resize(held, max(len(held), settings.clusters))  # k-means needs at least k points
    with warnings.catch_warnings():  # identical clients give fewer than k clusters
        warnings.simplefilter("ignore", ConvergenceWarning)
        means.fit(points[held], sample_weight=holders[held] / np.bincount(held)[held])
    labels = np.zeros(len(places), dtype=np.int64)
    labels[held] = means.labels_
    return labels


def coordinates(vectors: list[Tensor]) -> np.ndarray:
    """Points in n dimensions with the same distances as n `vectors` [P].

    k-means uses distances only, and models have millions of parameters. Principal coordinates of
    the centred Gram matrix preserve distances without a copy of the vectors in double precision.
    """
    values, directions = np.linalg.eigh(gram(vectors, centred=True))
    return directions * np.sqrt(np.clip(values, 0, None))


def _means(
    places: Sequence[Tensor], labels: np.ndarray, weight: np.ndarray, before: Tensor
) -> Tensor:
    """Weighted mean model of each cluster [clusters, P]; an empty one keeps its former model."""
    means = before.clone()
    for cluster in range(len(means)):
        share = np.where(labels == cluster, weight, 0)
        if share.any():
            means[cluster] = weighted_mean(places, share / share.sum())
    return means
