"""Synthetic new clients that resemble known ones, and their placement (REPA Algorithm 1).

    for i in 1 .. n:  r = a client of the cluster, uniformly at random
                      p = a client with a data-generating process like r's
                      a hit if p is placed in the cluster

The new client holds unseen images, (d_r + noise) * s of every label, transformed by the pipeline of
r. The printed loop "from 0 to n" has n + 1 passes but divides by n; here there are n passes.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from pydantic import Field
from pydantic.dataclasses import dataclass

from clustered_fl.data.drift import Drift
from clustered_fl.data.transforms import pipeline, transformed
from clustered_fl.errors import InputError
from clustered_fl.groupings.profiles.clusters import Clusters
from clustered_fl.groupings.profiles.network import Profiler
from clustered_fl.options import STRICT
from clustered_fl.randomness import generator

TRIES = 1000
"""Draws of a size before a client is refused as too small."""


@dataclass(frozen=True, config=STRICT)
class Robustness:
    """Settings of Algorithm 1; the paper states none of them.

    Attributes:
        iterations: n; 50 in the authors' follow-up code.
        noise: standard deviation of the normal noise on the number of images of each label, in
            units of the reference client's mean number; a negative number counts as 0. The
            follow-up code has no noise: 0.
        smallest, largest: bounds of the uniform s; those of the follow-up code.
        images: smallest number of images of a new client; with fewer, s and the noise are drawn
            again, as in the follow-up code.
    """

    iterations: int = Field(default=50, ge=1)
    noise: float = Field(default=0.1, ge=0)
    smallest: float = Field(default=0.2, gt=0)
    largest: float = Field(default=1.4, gt=0)
    images: int = Field(default=9, ge=1)

    def __post_init__(self) -> None:
        if self.smallest > self.largest:
            raise InputError(
                f"smallest = {self.smallest}; it may be at most largest = {self.largest}"
            )


class Probe(NamedTuple):
    """A new client: its reference client, its images uint8 [n, C, H, W] and their labels [n]."""

    reference: int
    images: np.ndarray
    labels: np.ndarray


Place = Callable[[list[Probe]], np.ndarray]
"""Function from new clients to their clusters, int64 [n]."""


def similar_counts(
    counts: np.ndarray, settings: Robustness, rng: np.random.Generator
) -> np.ndarray:
    """Number of images per label of a client like one with `counts` [classes]: int64 [classes].

    Raises: InputError if no draw has enough images.
    """
    for _ in range(TRIES):
        noise = rng.normal(0, settings.noise * counts.mean(), len(counts))
        scale = rng.uniform(settings.smallest, settings.largest)
        wanted = np.rint(np.clip(counts + noise, 0, None) * scale).astype(np.int64)
        if wanted.sum() >= settings.images:
            return wanted
    raise InputError(
        f"a client of {int(counts.sum())} images has too few for others like it to have "
        f"{settings.images}; ask for fewer"
    )


def outcomes(
    profiler: Profiler, clusters: Clusters, settings: Robustness, seed: int, place: Place
) -> Iterator[dict[str, Any]]:
    """A row per new client: its cluster (first), the client it resembles (second), 1 for a hit.

    Raises: InputError if no test image is unseen.
    """
    unseen = _unseen(profiler)
    for group in range(clusters.groups.max() + 1):
        members = np.flatnonzero(clusters.groups == group)
        rng = generator(seed, "robustness", group)
        probes = [
            _probe(profiler, int(rng.choice(members)), unseen, settings, seed, rng)
            for _ in range(settings.iterations)
        ]
        for probe, found in zip(probes, place(probes), strict=True):
            yield {"first": group, "second": probe.reference, "value": float(found == group)}


def _unseen(profiler: Profiler) -> list[np.ndarray]:
    """Rows of official test images, per label, that no client holds."""
    dataset, federation = profiler.dataset, profiler.federation
    held = np.concatenate([*federation.train, *federation.test_sets])
    free = np.setdiff1d(np.arange(dataset.train_rows, len(dataset.y)), held)
    if not len(free):
        raise InputError("robustness needs test images that no client holds; there are none")
    return [free[dataset.y[free] == label] for label in range(len(dataset.classes))]


def _probe(
    profiler: Profiler,
    reference: int,
    unseen: list[np.ndarray],
    settings: Robustness,
    seed: int,
    rng: np.random.Generator,
) -> Probe:
    """A client like `reference`; it gets all images of a label with too few."""
    dataset, drift = profiler.dataset, drift_of(profiler)
    labels = dataset.y[profiler.federation.train[reference]]
    wanted = similar_counts(np.bincount(labels, minlength=len(unseen)), settings, rng)
    pairs = zip(unseen, wanted, strict=True)
    rows = np.concatenate([rng.choice(r, min(n, len(r)), replace=False) for r, n in pairs])
    images, draw = dataset.x[rows], int(rng.integers(2**31))
    if drift:
        images = transformed(images, pipeline(drift, seed, reference), draw)
    return Probe(reference, images, dataset.y[rows])


def drift_of(profiler: Profiler) -> Drift | None:
    """The drift of the profiler's federation, None if there is none."""
    settings = profiler.config["federation"].get("drift")
    return None if settings is None else Drift(**settings)
