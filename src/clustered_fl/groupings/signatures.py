"""Signatures of clients, the k-means centres of their codes, and their UMAP embedding."""

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
        neighbours: UMAP's `n_neighbors`.
        min_dist: UMAP's `min_dist`, the least distance between points.
        dimensions: u of the embedding.
        transform: after the fit, embed each client's points again separately, as in FLT's code,
            which adds noise; otherwise use the fitted positions.
    """

    neighbours: int = Field(default=15, ge=2)
    min_dist: float = Field(default=0.1, ge=0)
    dimensions: int = Field(default=2, ge=1)
    transform: bool = False


def signature(embedding: np.ndarray, k: int, seed: int, client: int) -> np.ndarray:
    """Centres [k, e] of k-means on codes [n, e] (FLT Algorithm 2, line 9); InputError if n < k."""
    if len(embedding) < k:
        raise InputError(
            f"client {client} has {len(embedding)} samples, too few for a signature of k = {k} "
            f"centres; choose a smaller k or give every client {k} samples"
        )
    draw = int(generator(seed, "signature", client).integers(2**31))
    means = KMeans(k, n_init=10, random_state=draw)
    with warnings.catch_warnings():  # centres coincide if fewer than k images are distinct
        warnings.simplefilter("ignore", ConvergenceWarning)
        return means.fit(embedding.astype(np.float64)).cluster_centers_.astype(np.float32)


def on_manifold(signatures: np.ndarray, settings: Manifold, seed: int) -> np.ndarray:
    """Signatures [M, k, e] as points of a low-dimensional manifold: float32 [M, k, u] (line 14).

    The signature of a single client is returned unchanged. UMAP's results depend on the seed, the
    version of the library and the processor.

    Raises: InputError if there are not more centres than neighbours, and than dimensions and one.
    """
    clients, k, _ = signatures.shape
    if clients == 1:
        return signatures
    if settings.neighbours >= clients * k:
        raise InputError(
            f"UMAP with {settings.neighbours} neighbours needs more centres than that; {clients} "
            f"clients of k = {k} have {clients * k}"
        )
    if settings.dimensions > clients * k - 2:
        raise InputError(
            f"UMAP in {settings.dimensions} dimensions; allowed are 1 to {clients * k - 2} for "
            f"{clients} clients of k = {k}"
        )
    umap = _umap(settings, seed)
    with warnings.catch_warnings():  # clusters far apart share no neighbours
        warnings.filterwarnings("ignore", "Graph is not fully connected")
        points = umap.fit_transform(signatures.reshape(clients * k, -1))
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
