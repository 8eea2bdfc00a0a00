"""FedGroup: clients clustered by the cosines of their updates with a few common directions.

Duan, Liu, Ji, Liu, Liang, Chen, Tan, "FedGroup: Efficient Federated Learning via Decomposed
Similarity-Based Clustering" (ISPA 2021, arXiv:2010.06870): every client trains the model once; the
matrix of updates, one a column, is decomposed, and a client is described by the cosines of its
update with the leading left singular vectors (EDC, the decomposed cosine similarity). k-means
clusters these descriptions; the groups are static from then on. What is open or differs:

    directions  the paper and the authors' code take as many as there are groups, or three
                (`GrouProx/flearn/trainers/grouprox.py`); default: the number of clusters
    start       the paper pretrains from the first model; here from the network of a run, as `wd`
                does, so that methods that compare updates compare the same ones

A client that comes later is placed by its own cosines. The paper compares its update with the mean
updates of the groups.
"""

from typing import Any

import numpy as np
from pydantic import Field
from pydantic.dataclasses import dataclass

from clustered_fl.engine.inner_products import gram
from clustered_fl.engine.workload import LocalSettings
from clustered_fl.errors import InputError
from clustered_fl.groupings.clients import Clients, Found
from clustered_fl.groupings.profiles.clusters import cluster, related
from clustered_fl.groupings.profiles.network import load_profiler
from clustered_fl.groupings.profiles.updates import own_updates
from clustered_fl.groupings.wd import TRAINING
from clustered_fl.options import STRICT

profile = load_profiler
"""The network of a run takes the place of an encoder."""


@dataclass(frozen=True, config=STRICT)
class Settings:
    """Settings of FedGroup.

    Attributes:
        clusters: k of k-means.
        directions: number of singular vectors to compare updates with; None: one per cluster.
        training: of every client.
    """

    clusters: int = Field(ge=1)
    directions: int | None = Field(default=None, ge=1)
    training: LocalSettings = TRAINING


def relate(clients: Clients, encoder: Any, settings: Settings, seed: int) -> Found:
    """Let all clients train, cluster those that are there and place the newcomers.

    Raises: InputError if there is no run to take the model of, or there are too few clients.
    """
    changes = own_updates("fedgroup", encoder, None, settings.training, seed)
    number = settings.directions or settings.clusters
    points = decomposed_cosines(gram(changes), clients.number, number)
    return related(points, cluster(points[: clients.number], settings.clusters, seed)), []


def decomposed_cosines(products: np.ndarray, present: int, directions: int) -> np.ndarray:
    """Cosines of updates with left singular vectors of those present: float64 [n, directions].

    With U = D S V^T, one update a column, d_j^T D = s_j v_j^T: inner products are enough, and the
    vectors, as long as the model, are never formed. A direction of length 0, and an update of
    length 0, has cosine 0 with all others.

    Args:
        products: inner products of all updates [n, n], those present first.
        present: clients whose updates are decomposed.
        directions: number of singular vectors, the largest singular value first.
    Raises: InputError if there are fewer clients than directions.
    """
    if directions > present:
        raise InputError(f"{directions} singular vectors of {present} updates; too many")
    squares, right = np.linalg.eigh(products[:present, :present])
    values = np.sqrt(np.clip(squares[::-1][:directions], 0, None))
    along = products[:, :present] @ right[:, ::-1][:, :directions]
    lengths = np.outer(np.sqrt(np.diag(products)), values)
    return np.divide(along, lengths, out=np.zeros_like(along), where=lengths > 0)
