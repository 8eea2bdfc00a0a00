"""Measurements of clients' vectors besides the grouping, as one tidy table.

A row has measure, round, first, second and value; -1 marks a number without meaning.

    labels       number of images with label `second` of client `first`
    tests        number of test images of client `first`
    cosine       of the vectors of training clients `first` < `second`
    similarity   of these clients' pipelines
    robustness   1 if a new client like `second` was placed in its cluster `first`, else 0
"""

from collections.abc import Callable, Iterator
from dataclasses import field
from typing import Annotated, Any

import numpy as np
from pydantic import Field
from pydantic.dataclasses import dataclass

from clustered_fl.errors import InputError
from clustered_fl.groupings.profiles.clusters import Clusters
from clustered_fl.groupings.profiles.network import Profiler
from clustered_fl.groupings.profiles.probes import Place, Robustness, drift_of, outcomes
from clustered_fl.groupings.profiles.similarity import pipeline_similarity
from clustered_fl.groupings.profiles.statistics import normalised
from clustered_fl.options import STRICT

Row = dict[str, Any]


@dataclass(frozen=True, config=STRICT)
class Measures:
    """Measurements to take; all need a profiler.

    Attributes:
        rounds: further rounds of the profiler's run for which the cosines of clients' vectors are
            measured (REPA Fig. 1).
        images: number of images for comparing pipelines; 0 for no comparison.
        robustness: settings of Algorithm 1; None to skip it.
    """

    rounds: tuple[Annotated[int, Field(ge=1)], ...] = field(default=())
    images: int = Field(default=0, ge=0)
    robustness: Robustness | None = None


def measured(
    profiler: Profiler,
    settings: Measures,
    vectors: Callable[[int], np.ndarray],
    points: np.ndarray,
    clusters: Clusters,
    now: int | None,
    seed: int,
    place: Place,
) -> Iterator[Row]:
    """All rows.

    Args:
        vectors: function from a round to vectors of all clients, [M + newcomers, d].
        points: the clustered vectors, after `now` rounds (None: all).
    Raises: InputError if `images` is positive but clients have no pipelines.
    """
    drift, now = drift_of(profiler), profiler.rounds if now is None else now
    yield from _counts(profiler, now)
    number = profiler.federation.clients
    yield from _pairs("cosine", now, cosines(points[:number]))
    for rounds in settings.rounds:
        if rounds != now:
            yield from _pairs("cosine", rounds, cosines(vectors(rounds)[:number]))
    if settings.images:
        if drift is None:
            raise InputError("measure: images compare pipelines, and this federation has no drift")
        alike = pipeline_similarity(profiler, drift, settings.images, seed)
        yield from _pairs("similarity", profiler.rounds, alike)
    if settings.robustness:
        for row in outcomes(profiler, clusters, settings.robustness, seed, place):
            yield {"measure": "robustness", "round": now} | row


def cosines(vectors: np.ndarray) -> np.ndarray:
    """Cosines between rows of [n, d]: float64 [n, n]; a zero vector has cosine 0 with all."""
    unit = normalised(vectors.astype(np.float64))
    return np.clip(unit @ unit.T, -1, 1)


def _counts(profiler: Profiler, now: int) -> Iterator[Row]:
    dataset, federation = profiler.dataset, profiler.federation
    for client, rows in enumerate(federation.train):
        counts = np.bincount(dataset.y[rows], minlength=len(dataset.classes))
        for label, count in enumerate(counts.tolist()):
            yield _row("labels", now, client, label, count)
        tests = federation.test_sets[federation.test_of[client]]
        yield _row("tests", now, client, -1, len(tests))


def _pairs(measure: str, now: int, values: np.ndarray) -> Iterator[Row]:
    for first, second in zip(*np.triu_indices(len(values), 1), strict=True):
        yield _row(measure, now, int(first), int(second), values[first, second])


def _row(measure: str, now: int, first: int, second: int, value: float) -> Row:
    place = {"measure": measure, "round": now, "first": first, "second": second}
    return place | {"value": float(value)}
