"""WD: clients described by what their own training changes in a model (Briggs, Fan, Andras 2020).

e_i = theta^T - theta_i^{T+1}: every client, the newcomers too, trains the network of a run for f
epochs on its own labelled images, and the changes are clustered. It is REPA's baseline; a client
that cannot train, or has no labels, cannot be placed. Briggs et al. cluster hierarchically; REPA
replaces that by k-means, which can place newcomers. It does not say T, the optimiser, or whether
vectors are divided by their lengths:

    round      T; default: after all rounds of the profiler's run
    training   of the f epochs (`epochs`); default: Adam, 0.001 and batches of 32, like REPA's run
    normalise  divide every change by its length, as the authors' follow-up code does. Without, a
               client's number of steps, and so of images, decides

Trained are the encoder and the classifier, by the cross-entropy alone, whatever else the run has
trained. The changes themselves are not kept: the signatures are points with the same lengths,
distances and angles (`profiles.updates`).
"""

from dataclasses import field
from typing import Any

import numpy as np
import torch
from pydantic import Field
from pydantic.dataclasses import dataclass

from clustered_fl.engine.workload import LocalSettings
from clustered_fl.errors import InputError
from clustered_fl.groupings.clients import Clients, Found
from clustered_fl.groupings.profiles.clusters import cluster, related
from clustered_fl.groupings.profiles.measurements import Measures, measured
from clustered_fl.groupings.profiles.network import Profiler, load_profiler
from clustered_fl.groupings.profiles.probes import Probe
from clustered_fl.groupings.profiles.updates import Span, updates
from clustered_fl.options import STRICT

profile = load_profiler
"""The network of a run takes the place of an encoder."""
TRAINING = LocalSettings(epochs=1, batch_size=32, lr=1e-3, optimiser="adam")


@dataclass(frozen=True, config=STRICT)
class Settings:
    """Settings of WD.

    Attributes:
        clusters: k of k-means.
        training: of every client; its epochs are f, 1 or 2 in the paper.
        normalise: divide every change by its length.
        round: T, None for the last of the profiler's run.
        measure: what else to measure.
    """

    clusters: int = Field(ge=1)
    training: LocalSettings = TRAINING
    normalise: bool = True
    round: int | None = Field(default=None, ge=1)
    measure: Measures = field(default_factory=Measures)


def relate(clients: Clients, encoder: Any, settings: Settings, seed: int) -> Found:
    """Let all clients train, cluster those that are there and place the newcomers.

    Returns: the relatedness and the rows of `profiles.measurements`.
    Raises: InputError if there is no run to take the model of, or it cannot be what is asked for.
    """
    if not isinstance(encoder, Profiler):
        raise InputError("grouping wd needs the model of a run; name one with `profiler:`")
    dataset, federation, now = encoder.dataset, encoder.federation, settings.round
    images, labels = torch.from_numpy(dataset.x), torch.from_numpy(dataset.y)

    def span_after(rounds: int | None) -> Span:
        own = (images, labels, federation.train, federation.label_maps)
        return Span(updates(encoder, rounds, *own, settings.training, seed), settings.normalise)

    def at(rounds: int) -> np.ndarray:
        return span_after(rounds).points

    def place(probes: list[Probe]) -> np.ndarray:
        references, *parts = zip(*probes, strict=True)
        new = [torch.from_numpy(np.concatenate(part)) for part in parts]  # images and labels
        ends = np.cumsum([len(probe.labels) for probe in probes])
        rows = np.split(np.arange(ends[-1]), ends[:-1])
        maps = federation.label_maps[list(references)]  # a new client has the names of its like
        found = updates(encoder, now, *new, rows, maps, settings.training, seed)
        return clusters.nearest(span.place(found))

    span = span_after(now)
    clusters = cluster(span.points[: clients.number], settings.clusters, seed)
    about = (encoder, settings.measure, at, span.points, clusters, now, seed, place)
    return related(span.points, clusters), list(measured(*about))
