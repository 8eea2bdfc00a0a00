"""FL+HC: hierarchical clustering of clients by their weight updates.

Briggs, Fan, Andras, "Federated learning with hierarchical clustering of local updates to improve
training on non-IID data" (IJCNN 2020): after some rounds of FedAvg every client trains the global
model, and agglomerative clustering joins the updates. `wd` is the same with k-means, as REPA's
baseline. What is open or differs is a setting:

    clusters   the paper cuts the tree at a distance that it searches for each dataset; here it is
               cut into a given number
    linkage    the paper tries single, complete, average and Ward's on L1, L2 and cosine distances;
               ours are Euclidean, so that Ward's is defined
    normalise  divide every update by its length, which makes the distance one of cosines
"""

from typing import Any, Literal

import numpy as np
from pydantic import Field
from pydantic.dataclasses import dataclass
from scipy.cluster.hierarchy import linkage

from clustered_fl.engine.workload import LocalSettings
from clustered_fl.errors import InputError
from clustered_fl.groupings.clients import Clients, Found
from clustered_fl.groupings.distances import cut
from clustered_fl.groupings.profiles.clusters import Clusters, related
from clustered_fl.groupings.profiles.network import load_profiler
from clustered_fl.groupings.profiles.updates import Span, own_updates
from clustered_fl.groupings.wd import TRAINING
from clustered_fl.options import STRICT

profile = load_profiler
"""The network of a run takes the place of an encoder."""


@dataclass(frozen=True, config=STRICT)
class Settings:
    """Settings of hierarchical clustering of updates.

    Attributes:
        clusters: their number.
        linkage: what the distance of two clusters is.
        training: of every client.
        normalise: divide every update by its length.
    """

    clusters: int = Field(ge=1)
    linkage: Literal["ward", "complete", "average", "single"] = "ward"
    training: LocalSettings = TRAINING
    normalise: bool = True


def relate(clients: Clients, encoder: Any, settings: Settings, seed: int) -> Found:
    """Let all clients train, join the updates of those that are there, place the newcomers.

    Raises: InputError if there is no run to take the model of, or there are too few clients.
    """
    changes = own_updates("hierarchical", encoder, None, settings.training, seed)
    points = Span(changes, settings.normalise).points
    return related(points, joined(points[: clients.number], settings)), []


def joined(points: np.ndarray, settings: Settings) -> Clusters:
    """Clusters of points [M, d]; an InputError if there are fewer points."""
    number = settings.clusters
    if number > len(points):
        raise InputError(f"{number} clusters of {len(points)} clients; too many")
    groups = np.zeros(1, np.int64)
    if len(points) > 1:
        groups = cut(linkage(points, method=settings.linkage), number)
    centres = [points[groups == group].mean(0) for group in range(groups.max() + 1)]
    return Clusters(groups, np.stack(centres))
