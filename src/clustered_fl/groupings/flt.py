"""FLT's client relatedness (Jamali-Rad, Abdizadeh, Singh, TNNLS 2022, Algorithm 2, "FCR").

Every client embeds its images with an autoencoder and sends the centres of a k-means; the server
lays all centres out by UMAP, and two clients are related if their points are close. The paper's
text and its code differ in most steps; every difference is a setting, with the printed one as
default and the code's beside it:

    k                 5 printed; the number of labels that a client of the scenario holds in the
                      code, which the server cannot know
    distance          minimum over pairs of points printed; minimum-cost matching in the code
    manifold.transform  UMAP's own layout here; each client placed by itself in the code
    tuning            every client by itself printed; see `encoders.tuning` for the code's
    order             "leaf" is a mistake of the code, see `distances.ward`
"""

from collections.abc import Iterator
from dataclasses import field, replace
from itertools import product
from typing import Any, Literal

import numpy as np
from pydantic import Field
from pydantic.dataclasses import dataclass

from clustered_fl.encoders.training import TrainingSettings, embed
from clustered_fl.encoders.tuning import Mode, tuned
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
from clustered_fl.groupings.signatures import Manifold, on_manifold, signature
from clustered_fl.models.autoencoder import Autoencoder
from clustered_fl.options import STRICT
from clustered_fl.relatedness import Relatedness


@dataclass(frozen=True, config=STRICT)
class Comparison:
    """Settings to compare; every combination is measured against the true groups.

    Attributes:
        seeds: of UMAP, 0 to this number.
        k: other numbers of centres.
        gammas: thresholds.
    """

    seeds: int = Field(default=1, ge=1)
    k: tuple[int, ...] = ()
    gammas: tuple[float, ...] = (0.5, 1.0, 2.0)


@dataclass(frozen=True, config=STRICT)
class Settings:
    """Settings of FCR.

    Attributes:
        k: centres per client.
        tuning: who fine-tunes the encoder, "none" for Enc1.
        tuning_epochs: J.
        batch_size, lr: of the fine-tuning, by Adam.
        manifold: settings of UMAP.
        distance: between clients.
        gamma: two clients closer than this are related; in UMAP's units.
        case: what is averaged: "relatedness" (Algorithm 3, case I) or "groups" (case II).
        groups: number of disjoint clusters by Ward's method; None: the connected components.
        order: of Ward's cluster numbers.
        again: find the relatedness once more with the newcomers, in fine-tune mode (Algorithm 3,
            line 25).
        compare: other settings to measure.
    """

    k: int = Field(default=5, ge=1)
    tuning: Mode = "none"
    tuning_epochs: int = Field(default=5, ge=0)
    batch_size: int = Field(default=64, ge=1)
    lr: float = Field(default=1e-3, gt=0)
    manifold: Manifold = field(default_factory=Manifold)
    distance: Distance = "minimum"
    gamma: float = Field(default=1.0, gt=0)
    case: Literal["relatedness", "groups"] = "relatedness"
    groups: int | None = Field(default=None, ge=1)
    order: Order = "client"
    again: bool = False
    compare: Comparison = field(default_factory=Comparison)


def relate(
    clients: Clients, encoder: Autoencoder | None, settings: Settings, seed: int
) -> tuple[Relatedness, list[dict[str, Any]]]:
    """Find who is related to whom, and measure how other settings would have done.

    Args:
        clients: their images.
        encoder: the server's.
        settings: of FCR.
        seed: of fine-tuning, k-means and UMAP.
    Returns:
        The relatedness, and one row per combination of `settings.compare`: k, distance, gamma,
        umap_seed, and the measures of `agreement`.
    Raises:
        InputError: if there is no encoder, a client has fewer samples than k, or UMAP has too few
            centres.
    """
    if encoder is None:
        raise InputError("grouping flt needs an encoder; name one with `encoder:`")
    sizes = (settings.k, *(k for k in settings.compare.k if k != settings.k))
    sent = _signatures(clients, encoder, settings, sizes, seed)
    found = _relatedness(sent[settings.k], clients.number, settings, seed)
    if settings.again:
        found = replace(found, later=_later(clients, encoder, settings, seed))
    return found, list(_compared(sent, clients, settings))


def _signatures(
    clients: Clients, encoder: Autoencoder, settings: Settings, sizes: tuple[int, ...], seed: int
) -> dict[int, np.ndarray]:
    """Signatures of all clients, newcomers last, for each number of centres: k -> [n, k, e]."""
    training = TrainingSettings(settings.tuning_epochs, settings.batch_size, settings.lr)
    sent: dict[int, list[np.ndarray]] = {k: [] for k in sizes}
    encoders = tuned(encoder, clients.images, clients.rows, settings.tuning, training, seed)
    for client, own in enumerate(encoders):
        codes = embed(own, clients.images(clients.rows[client]))
        for k in sizes:
            sent[k].append(signature(codes, k, seed, client))
    return {k: np.stack(each) for k, each in sent.items()}


def _relatedness(signatures: np.ndarray, number: int, settings: Settings, seed: int) -> Relatedness:
    known = signatures[:number]
    points = _points(known, settings, seed)
    distances = client_distances(points, settings.distance)
    related = threshold(distances, settings.gamma)
    if settings.groups is None:
        groups = components(related)
    else:
        groups = ward(related, settings.groups, settings.order)
    if settings.case == "groups":
        related = same_group(groups)
    placed, never = place(signatures[number:], known, groups), np.zeros((0, 0), np.uint8)
    return Relatedness(related, groups, placed, never, distances, signatures, points)


def _later(clients: Clients, encoder: Autoencoder, settings: Settings, seed: int) -> np.ndarray:
    """Relatedness of everybody who is there after newcomers have joined: uint8 [n, n].

    Every client fine-tunes the encoder on the data that it has then. Who was replaced is related to
    nobody but himself.
    """
    tuning = replace(settings, tuning="independent")
    everybody = _signatures(clients, encoder, tuning, (settings.k,), seed)[settings.k]
    present = np.setdiff1d(np.arange(len(everybody)), clients.replaced)
    found = _relatedness(everybody[present], len(present), settings, seed)
    later = np.eye(len(everybody), dtype=np.uint8)
    later[np.ix_(present, present)] = found.related
    return later


def _points(signatures: np.ndarray, settings: Settings, umap_seed: int) -> np.ndarray:
    """Signatures laid out; a single client has nobody to be near to."""
    if len(signatures) == 1:
        return signatures
    return on_manifold(signatures, settings.manifold, umap_seed)


def place(newcomers: np.ndarray, known: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """A client of the cluster whose mean signature is nearest, for each newcomer: int64 [n].

    FLT section III-B4, left to future work there. Centres have no order, so that the signatures of
    a cluster are averaged over all their centres.

    Args:
        newcomers: signatures [n, k, e].
        known: signatures [M, k, e].
        groups: [M].
    """
    hosts = np.array([np.flatnonzero(groups == g)[0] for g in range(groups.max() + 1)])
    means = np.stack([known[groups == g].mean((0, 1)) for g in range(groups.max() + 1)])
    apart = np.linalg.norm(newcomers.mean(1)[:, None] - means[None], axis=2)
    return hosts[apart.argmin(1)].astype(np.int64) if len(newcomers) else np.zeros(0, np.int64)


def _compared(
    sent: dict[int, np.ndarray], clients: Clients, settings: Settings
) -> Iterator[dict[str, Any]]:
    """Agreement with the true groups of every combination of settings."""
    for k, umap_seed in product(sent, range(settings.compare.seeds)):
        points = _points(sent[k][: clients.number], settings, umap_seed)
        for distance in ("minimum", "matching"):
            distances = client_distances(points, distance)
            for gamma in settings.compare.gammas:
                key = {"k": k, "distance": distance, "gamma": gamma, "umap_seed": umap_seed}
                yield key | agreement(threshold(distances, gamma), clients.groups)
