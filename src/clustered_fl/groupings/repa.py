"""REPA: clients described by statistics of their embedded images (Radovič and Pejović).

e_i = S(phi(X_i)): a network phi, in evaluation mode and with the pixel normalisation of its
training, maps client i's images to codes, S computes statistics of each dimension, and k-means
clusters the clients (eq. 5). No client trains and no labels are used, so clients that join later,
or only use a model, are placed like the others. What the paper leaves open is a setting:

    round       trained "for a predefined number of epochs", unspecified; default: all rounds
    statistics  mean and three quartiles for Fig. 1, which "yield the best overall correlation",
                mean and deviation for Fig. 5; unspecified for the others
    normalise   not mentioned; the authors' follow-up code divides every e_i by its length
                (`src/clustering/clusterer.py`), which is the default here. Otherwise the scale of
                a dimension and the length of a client's vector have influence

phi is the encoder of a run (`profiler:`; the paper's CLF with reconstruction 0, its AE with 1, and
its SAE in between) or an autoencoder that the server has trained (`encoder:`).
"""

from collections.abc import Callable, Iterable
from dataclasses import field
from functools import partial

import numpy as np
import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Tensor

from clustered_fl.encoders.training import embed
from clustered_fl.errors import InputError
from clustered_fl.groupings.clients import Clients, Found
from clustered_fl.groupings.profiles.clusters import cluster, related
from clustered_fl.groupings.profiles.measurements import Measures, measured
from clustered_fl.groupings.profiles.network import Profiler, load_profiler
from clustered_fl.groupings.profiles.probes import Probe
from clustered_fl.groupings.profiles.statistics import Statistic, described, normalised
from clustered_fl.models.autoencoder import Autoencoder
from clustered_fl.options import STRICT

profile = load_profiler
"""The network of a run can be used instead of an encoder."""


@dataclass(frozen=True, config=STRICT)
class Settings:
    """Settings of REPA.

    Attributes:
        clusters: k of k-means.
        statistics: of every dimension of the codes.
        normalise: divide each client's vector by its length.
        round: round of the profiler's run whose network is used; None for the last.
        measure: additional measurements.
    """

    clusters: int = Field(ge=1)
    statistics: tuple[Statistic, ...] = Field(default=("mean", "q25", "q50", "q75"), min_length=1)
    normalise: bool = True
    round: int | None = Field(default=None, ge=1)
    measure: Measures = field(default_factory=Measures)


def relate(
    clients: Clients, encoder: Profiler | Autoencoder | None, settings: Settings, seed: int
) -> Found:
    """Cluster the clients, place the newcomers, and take the additional measurements.

    Returns: the relatedness, whose signatures are the clients' vectors [n, 1, d], and the rows of
        `profiles.measurements`.
    Raises: InputError if there is no network, or it does not support the settings.
    """
    if encoder is None:
        raise InputError(
            "grouping repa needs a network: `profiler:` or `encoder:` of the entry, or `network=`"
        )

    def vectors(images: Iterable[Tensor], rounds: int | None) -> np.ndarray:
        encode = _encode(encoder, rounds)
        found = np.stack([described(encode(own), settings.statistics) for own in images])
        return normalised(found) if settings.normalise else found

    def at(rounds: int | None) -> np.ndarray:
        return vectors((clients.x[torch.from_numpy(rows)] for rows in clients.rows), rounds)

    def place(probes: list[Probe]) -> np.ndarray:
        images = (torch.from_numpy(probe.images).to(clients.x.device) for probe in probes)
        return clusters.nearest(vectors(images, settings.round))

    points = at(settings.round)
    clusters = cluster(points[: clients.number], settings.clusters, seed)
    found = related(points, clusters)
    if isinstance(encoder, Profiler):
        about = (encoder, settings.measure, at, points, clusters, settings.round, seed, place)
        return found, list(measured(*about))
    if settings.measure != Measures():
        raise InputError("measure needs the labels and models of a run; name a `profiler:`")
    return found, []


def _encode(encoder: Profiler | Autoencoder, rounds: int | None) -> Callable[[Tensor], np.ndarray]:
    """A function from images uint8 [n, C, H, W] to their codes."""
    if isinstance(encoder, Profiler):
        return partial(encoder.codes, network=encoder.network(rounds))
    if rounds is not None:
        raise InputError(f"round = {rounds} of an encoder; it has none, only a profiler has rounds")
    return lambda images: embed(encoder, images.float() / 255)
