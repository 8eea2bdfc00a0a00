"""WD: clients compared by their weight updates after local training (Briggs, Fan, Andras 2020).

e_i = theta^T - theta_i^{T+1}: every client, including newcomers, trains the network of a run for f
epochs on its own labelled images, and the updates are clustered. It is REPA's baseline; a client
that cannot train or has no labels cannot be placed. Briggs et al. cluster hierarchically; REPA uses
k-means, which can place newcomers. REPA does not state T, the optimiser, or a normalisation:

    round      T; default: after all rounds of the profiler's run
    training   of the f epochs (`epochs`); default: Adam, 0.001, batches of 32, like REPA's run
    normalise  divide each update by its length, as in the authors' follow-up code. Otherwise the
               number of a client's steps, and so of its images, dominates

Encoder and classifier are trained with the cross-entropy only, whatever the run has trained. The
updates are not stored: signatures are points with the same lengths, distances and angles
(`profiles.updates`).
"""

from dataclasses import field
from typing import Any

import numpy as np
import torch
from pydantic import Field
from pydantic.dataclasses import dataclass

from clustered_fl.engine.workload import LocalSettings
from clustered_fl.groupings.clients import Clients, Found
from clustered_fl.groupings.profiles.clusters import cluster, related
from clustered_fl.groupings.profiles.measurements import Measures, measured
from clustered_fl.groupings.profiles.network import load_profiler
from clustered_fl.groupings.profiles.probes import Probe
from clustered_fl.groupings.profiles.updates import Span, own_updates, updates
from clustered_fl.options import STRICT

profile = load_profiler
"""The network of a run is used instead of an encoder."""
TRAINING = LocalSettings(epochs=1, batch_size=32, lr=1e-3, optimiser="adam")


@dataclass(frozen=True, config=STRICT)
class Settings:
    """Settings of WD.

    Attributes:
        clusters: k of k-means.
        training: of every client; its epochs are f, 1 or 2 in the paper.
        normalise: divide each update by its length.
        round: T; None for the last round of the profiler's run.
        measure: additional measurements.
    """

    clusters: int = Field(ge=1)
    training: LocalSettings = TRAINING
    normalise: bool = True
    round: int | None = Field(default=None, ge=1)
    measure: Measures = field(default_factory=Measures)


def relate(clients: Clients, encoder: Any, settings: Settings, seed: int) -> Found:
    """Train all clients, cluster those without newcomers, and place the newcomers.

    Returns: the relatedness and the rows of `profiles.measurements`.
    Raises: InputError if there is no profiler, or it does not support the settings.
    """
    now = settings.round

    def span_after(rounds: int | None) -> Span:
        own = own_updates("wd", encoder, rounds, settings.training, seed)
        return Span(own, settings.normalise)

    def at(rounds: int) -> np.ndarray:
        return span_after(rounds).points

    def place(probes: list[Probe]) -> np.ndarray:
        references, *parts = zip(*probes, strict=True)
        new = [torch.from_numpy(np.concatenate(part)) for part in parts]  # images and labels
        ends = np.cumsum([len(probe.labels) for probe in probes])
        rows = np.split(np.arange(ends[-1]), ends[:-1])
        # Labels of the client that it resembles.
        maps = encoder.federation.label_maps[list(references)]
        found = updates(encoder, now, *new, rows, maps, settings.training, seed)
        return clusters.nearest(span.place(found))

    span = span_after(now)
    clusters = cluster(span.points[: clients.number], settings.clusters, seed)
    about = (encoder, settings.measure, at, span.points, clusters, now, seed, place)
    return related(span.points, clusters), list(measured(*about))
