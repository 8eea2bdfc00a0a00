"""What a client sends: the centres of its embedded images; and where they lie together."""

import warnings

import numpy as np
from pydantic import Field
from pydantic.dataclasses import dataclass
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from clustered_fl.errors import InputError
from clustered_fl.options import STRICT
from clustered_fl.randomness import generator


@dataclass(frozen=True, config=STRICT)
class Manifold:
    """Settings of UMAP; the defaults are the library's and those of FLT's code.

    Attributes:
        neighbours: of a point that UMAP takes as near it.
        min_dist: how close points may lie.
        dimensions: u of the result.
        transform: place every client's points by themselves after UMAP has seen all, as FLT's code
            does, which adds noise; otherwise where UMAP's fit has put them.
    """

    neighbours: int = Field(default=15, ge=2)
    min_dist: float = Field(default=0.1, ge=0)
    dimensions: int = Field(default=2, ge=1)
    transform: bool = False


def signature(embedding: np.ndarray, k: int, seed: int, client: int) -> np.ndarray:
    """Centres of k-means on one client's codes [n, e]: float32 [k, e] (FLT Algorithm 2, line 9).

    Raises:
        InputError: if the client has fewer samples than k.
    """
    if len(embedding) < k:
        raise InputError(
            f"client {client} has {len(embedding)} samples, too few for a signature of k = {k} "
            f"centres; choose a smaller k or give every client {k} samples"
        )
    draw = int(generator(seed, "signature", client).integers(2**31))
    with warnings.catch_warnings():
        # Fewer different images than k: some centres coincide, and mean what they say.
        warnings.simplefilter("ignore", ConvergenceWarning)
        means = KMeans(k, n_init=10, random_state=draw).fit(embedding.astype(np.float64))
    return means.cluster_centers_.astype(np.float32)


def on_manifold(signatures: np.ndarray, settings: Manifold, seed: int) -> np.ndarray:
    """Signatures [M, k, e] as points of a low-dimensional manifold: float32 [M, k, u] (line 14).

    Args:
        seed: of UMAP, whose random state it is: results differ from seed to seed, and with other
            versions of the library or other processors.
    Raises:
        InputError: if a neighbourhood would hold all centres or more.
    """
    clients, k, _ = signatures.shape
    if settings.neighbours >= clients * k:
        raise InputError(
            f"UMAP with {settings.neighbours} neighbours needs more centres than that; {clients} "
            f"clients of k = {k} have {clients * k}"
        )
    flat = signatures.reshape(clients * k, -1)
    umap = _umap(settings, seed)
    points = umap.fit_transform(flat)
    if settings.transform:
        points = np.concatenate([umap.transform(each) for each in signatures])
    return points.reshape(clients, k, -1).astype(np.float32)


def _umap(settings: Manifold, seed: int):  # noqa: ANN202
    from umap import UMAP  # takes seconds to import

    return UMAP(
        n_neighbors=settings.neighbours,
        min_dist=settings.min_dist,
        n_components=settings.dimensions,
        random_state=seed,
        n_jobs=1,
    )
