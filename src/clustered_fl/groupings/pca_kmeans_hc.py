"""PCA+kM+HC, FLT's linear baseline, after Dennis et al. 2021 and as FLT's code does it.

Every client projects its pixels on principal components *of its own*, clusters them by k-means and
sends the centres; the server compares them as they are. The clients' bases are not aligned, so that
the k-th coordinate means something else for every client: the published numbers are those of this.
"""

from typing import Any, Literal

import numpy as np
from pydantic import Field
from pydantic.dataclasses import dataclass
from sklearn.decomposition import PCA

from clustered_fl.errors import InputError
from clustered_fl.groupings.agreement import agreement
from clustered_fl.groupings.clients import Clients
from clustered_fl.groupings.distances import (
    Distance,
    Order,
    client_distances,
    components,
    same_group,
    threshold,
    ward,
)
from clustered_fl.groupings.signatures import signature
from clustered_fl.models.autoencoder import Autoencoder
from clustered_fl.options import STRICT
from clustered_fl.relatedness import Relatedness


@dataclass(frozen=True, config=STRICT)
class Settings:
    """Settings of PCA+kM+HC; the defaults are those of FLT's code.

    Attributes:
        dimensions: principal components; a client with fewer samples repeats them.
        k: centres per client.
        distance: between clients.
        gamma: two clients closer than this are related.
        case: what is averaged, "relatedness" or disjoint "groups".
        groups: number of disjoint clusters by Ward's method; None: the connected components.
        order: of Ward's cluster numbers, see `distances.ward`.
    """

    dimensions: int = Field(default=128, ge=1)
    k: int = Field(default=5, ge=1)
    distance: Distance = "matching"
    gamma: float = Field(default=1.2, gt=0)
    case: Literal["relatedness", "groups"] = "relatedness"
    groups: int | None = Field(default=None, ge=1)
    order: Order = "client"


def relate(
    clients: Clients, encoder: Autoencoder | None, settings: Settings, seed: int
) -> tuple[Relatedness, list[dict[str, Any]]]:
    """Find who is related to whom; no encoder is needed.

    Returns:
        The relatedness, and one row of agreement with the true groups.
    Raises:
        InputError: if there are more components than pixels, or a client has fewer samples than k,
            the repeated ones included.
    """
    pixels = (clients.images(rows).flatten(1).numpy() for rows in clients.rows[: clients.number])
    sent = [
        signature(principal_components(own, settings.dimensions), settings.k, seed, client)
        for client, own in enumerate(pixels)
    ]
    signatures = np.stack(sent)
    distances = client_distances(signatures, settings.distance)
    related = threshold(distances, settings.gamma)
    groups = components(related)
    if settings.groups is not None:
        groups = ward(related, settings.groups, settings.order)
    measured = {"k": settings.k, "distance": settings.distance, "gamma": settings.gamma}
    measured |= {"umap_seed": -1} | agreement(related, clients.groups)
    related = same_group(groups) if settings.case == "groups" else related
    nobody, never = np.zeros(0, np.int64), np.zeros((0, 0), np.uint8)
    found = Relatedness(related, groups, nobody, never, distances, signatures, signatures)
    return found, [measured]


def principal_components(pixels: np.ndarray, dimensions: int) -> np.ndarray:
    """Scores [n', dimensions] of one client's images [n, pixels] on its own principal components.

    With fewer samples than components the rows are repeated until there are enough, as the code
    does; the components beyond the rank are then arbitrary and their scores zero.

    Raises:
        InputError: if there are more components than pixels.
    """
    if dimensions > pixels.shape[1]:
        raise InputError(
            f"{dimensions} principal components of {pixels.shape[1]} pixels; "
            f"allowed are 1 to {pixels.shape[1]}"
        )
    rows = np.resize(np.arange(len(pixels)), max(len(pixels), dimensions))
    model = PCA(dimensions, svd_solver="full")
    with np.errstate(invalid="ignore"):  # equal images have no variance to explain
        return model.fit_transform(pixels[rows].astype(np.float64)).astype(np.float32)
