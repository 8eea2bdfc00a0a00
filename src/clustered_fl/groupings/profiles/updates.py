"""Weight updates of clients' own training, and low-dimensional points with the same geometry.

k-means and cosines need inner products only: the Gram matrix of n updates gives points in n
dimensions with the same lengths, distances and angles. The updates, with one entry per parameter,
are stored once, in single precision.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils import parameters_to_vector

from clustered_fl.data.federation import Federation
from clustered_fl.engine.equivalents import classifying
from clustered_fl.engine.inner_products import gram, inner_products
from clustered_fl.engine.training import Engine
from clustered_fl.engine.workload import LocalSettings, Workload
from clustered_fl.errors import InputError
from clustered_fl.groupings.profiles.network import Profiler, classifier

TOGETHER = 50
"""Clients trained at a time, so that memory does not hold all updates twice."""
NOTHING = 1e-12
"""Fraction of the largest eigenvalue below which a direction is considered rounding error."""


def own_updates(
    name: str, profiler: Any, rounds: int | None, training: LocalSettings, seed: int
) -> Tensor:
    """`updates` of all clients, newcomers included, on their own images: float32 [clients, P'].

    Args:
        name: of the grouping, for the error message.
    Raises: InputError if the grouping was given no network of a run.
    """
    if not isinstance(profiler, Profiler):
        raise InputError(
            f"grouping {name} needs the model of a run: `profiler:` of the entry, or `network=`"
        )
    dataset, federation = profiler.dataset, profiler.federation
    images, labels = torch.from_numpy(dataset.x), torch.from_numpy(dataset.y)
    own = (images, labels, federation.train, federation.label_maps)
    return updates(profiler, rounds, *own, training, seed)


def updates(
    profiler: Profiler,
    rounds: int | None,
    images: Tensor,
    labels: Tensor,
    rows: Sequence[np.ndarray],
    label_maps: np.ndarray,
    settings: LocalSettings,
    seed: int,
) -> Tensor:
    """Weight updates of encoder and classifier: float32 [clients, P'].

    Random draws are those that the clients' next round in the run would have with this training.
    REPA has the opposite sign, which does not affect distances and angles.

    Args:
        rounds: round of the run whose model is the start.
        images, labels, label_maps: uint8 [N, C, H, W], int64 [N] and [clients, classes].
        rows: of each client.
        settings: of local training; its epochs are WD's f.
    """
    own = np.zeros(len(rows), dtype=np.int64)
    clients = Federation(tuple(rows), (rows[0],), own, label_maps, own)
    task, place = profiler.task(images, labels), torch.device(profiler.device)
    side = images.shape[-1]
    given = task, clients, settings, seed, place
    engine = Engine(Workload(lambda: classifying(profiler.build(), side), *given))
    model = parameters_to_vector(classifier(profiler.network(rounds)).parameters()).detach()
    now = profiler.rounds if rounds is None else rounds
    found = torch.empty(len(rows), len(model), device=place)
    for part in torch.arange(len(rows)).split(TOGETHER):
        found[part] = engine.train([model] * len(part), part.tolist(), now)[0]
    return found


class Span:
    """Points float64 [n, n] with the inner products of n vectors, and projections of others.

    Args:
        vectors: [n, P]; a reference is kept.
        unit: divide vectors by their lengths first; zero vectors stay zero.
    """

    def __init__(self, vectors: Tensor, unit: bool) -> None:
        self._vectors, self._unit = vectors, unit
        products = gram(vectors)
        self._lengths = self._scale(np.diag(products))
        products /= np.outer(self._lengths, self._lengths)
        values, self._directions = np.linalg.eigh(products)
        self._roots = np.sqrt(np.clip(values, 0, None))
        self.points = self._directions * self._roots

    def _scale(self, squares: np.ndarray) -> np.ndarray:
        """Divisors of vectors with these squared lengths."""
        lengths = np.sqrt(squares) if self._unit else np.ones(len(squares))
        return np.where(lengths > 0, lengths, 1.0)

    def place(self, others: Tensor) -> np.ndarray:
        """Points [m, n] of other vectors [m, P], projected onto the span.

        The orthogonal part adds the same to all distances, so the nearest centre is unchanged.
        """
        squares = torch.stack([other.double().square().sum() for other in others]).cpu().numpy()
        products = inner_products(others, self._vectors) / self._lengths
        products /= self._scale(squares)[:, None]
        real = self._roots**2 > NOTHING * max(self._roots.max() ** 2, NOTHING)
        inverse = np.divide(1, self._roots, out=np.zeros_like(self._roots), where=real)
        return products @ self._directions * inverse
