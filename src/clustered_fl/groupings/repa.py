"""REPA: clients described by statistics of their embedded images (Radovič and Pejović).

e_i = S(phi(X_i)): a network phi, in evaluation mode and with the pixels normalised as it was
trained, maps client i's images to codes, S keeps statistics of each of their dimensions, and
k-means clusters the clients (eq. 5). Nobody trains and no label is looked at, so that clients who
come later, or only ever use a model, are placed like the others. The paper leaves open, and here is
a setting with the reason beside it:

    round       trained "for a predefined number of epochs", not how many; default: all of them
    statistics  mean and three quartiles for Fig. 1, which "yield the best overall correlation",
                mean and deviation for Fig. 5; not said for the others
    normalise   the paper mentions none; the authors' follow-up code divides every e_i by its length
                (`src/clustering/clusterer.py`), and so is the default. Without, a dimension counts
                by its scale and a client by the length of its vector

phi is the encoder of a run (`profiler:`; reconstruction 0 makes it the paper's CLF, 1 its AE, and
between them it is the SAE) or an autoencoder that the server has trained before (`encoder:`).
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import field
from typing import Any

import numpy as np
import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Tensor

from clustered_fl.encoders.training import embed
from clustered_fl.errors import InputError
from clustered_fl.groupings.clients import Clients
from clustered_fl.groupings.profiles.clusters import cluster, related
from clustered_fl.groupings.profiles.measurements import Measures, measured
from clustered_fl.groupings.profiles.network import Profiler, load_profiler
from clustered_fl.groupings.profiles.probes import Probe
from clustered_fl.groupings.profiles.statistics import Statistic, described, normalised
from clustered_fl.models.autoencoder import Autoencoder
from clustered_fl.options import STRICT
from clustered_fl.relatedness import Relatedness

profile = load_profiler
"""A run can stand where an encoder does."""

Encode = Callable[[Tensor], np.ndarray]


@dataclass(frozen=True, config=STRICT)
class Settings:
    """Settings of REPA.

    Attributes:
        clusters: k of k-means.
        statistics: of every dimension of the codes.
        normalise: divide every client's vector by its length.
        round: of the profiler's run after which its network is taken; None: the last.
        measure: what else to measure.
    """

    clusters: int = Field(ge=1)
    statistics: tuple[Statistic, ...] = Field(default=("mean", "q25", "q50", "q75"), min_length=1)
    normalise: bool = True
    round: int | None = Field(default=None, ge=1)
    measure: Measures = field(default_factory=Measures)


def relate(
    clients: Clients, encoder: Profiler | Autoencoder | None, settings: Settings, seed: int
) -> tuple[Relatedness, list[dict[str, Any]]]:
    """Cluster the clients, place the newcomers, and measure what the settings ask for.

    Returns:
        The relatedness, whose signatures are the clients' vectors [n, 1, d], and the rows of
        `profiles.measurements`.
    Raises:
        InputError: if there is no network, or it cannot be what the settings ask for.
    """
    if encoder is None:
        raise InputError("grouping repa needs a network; name one with `profiler:` or `encoder:`")
    encode = _encode(encoder, settings.round)
    points = _vectors(_images(clients), encode, settings)
    clusters = cluster(points[: clients.number], settings.clusters, seed)
    found = related(points, clusters)
    if not isinstance(encoder, Profiler):
        _refuse_measures(settings.measure)
        return found, []

    def at(rounds: int) -> np.ndarray:
        return _vectors(_images(clients), _encode(encoder, rounds), settings)

    def place(probes: list[Probe]) -> np.ndarray:
        images = (torch.from_numpy(probe.images) for probe in probes)
        return clusters.nearest(_vectors(images, encode, settings))

    about = (encoder, settings.measure, at, points, clusters, settings.round, seed, place)
    return found, list(measured(*about))


def _refuse_measures(measure: Measures) -> None:
    if measure != Measures():
        raise InputError("measure needs the labels and models of a run; name a `profiler:`")


def _encode(encoder: Profiler | Autoencoder, rounds: int | None) -> Encode:
    """What gives codes of images uint8 [n, C, H, W]."""
    if isinstance(encoder, Profiler):
        network = encoder.network(rounds)
        return lambda images: encoder.codes(images, network)
    if rounds is not None:
        raise InputError(f"round = {rounds} of an encoder; it has none, only a profiler has rounds")
    return lambda images: embed(encoder, images.float() / 255)


def _images(clients: Clients) -> Iterator[Tensor]:
    """Images uint8 [n, C, H, W] of each client."""
    return (clients.x[torch.from_numpy(rows)] for rows in clients.rows)


def _vectors(images: Iterable[Tensor], encode: Encode, settings: Settings) -> np.ndarray:
    """e_i of each client, float64 [n, d]."""
    found = np.stack([described(encode(own), settings.statistics) for own in images])
    return normalised(found) if settings.normalise else found
