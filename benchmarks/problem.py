"""The work every engine is given: data, batches, learning rate and start parameters.

Everything is drawn here from fixed seeds, so that a problem is named by two words and any process,
a worker of Ray for instance, can make the same one. Nothing is downloaded: how long a step takes
does not depend on what the images show.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from clustered_fl.randomness import generator

SEED, ROUND = 0, 0
MEAN, DEVIATION = np.float32(0.5), np.float32(0.25)
LR, STEP_LR = 0.1, 1.0
"""Of a round, and of the gate's single step, whose update would otherwise be mostly rounding."""
TESTS = 200
"""Images on which a cell that ends in "-eval" tests every client's updated model, all at once."""


@dataclass(frozen=True)
class Architecture:
    """5 x 5 convolutions, each with ReLU and 2 x 2 max-pooling, then dense layers, ReLU between.

    Attributes:
        image: channels, height, width.
        filters: outputs of each convolution.
        padding: pixels around the input of each convolution.
        hidden: widths of the hidden dense layers.
        classes: number of outputs.
    """

    image: tuple[int, int, int]
    filters: tuple[int, ...]
    padding: int
    hidden: tuple[int, ...]
    classes: int

    @property
    def channels(self) -> tuple[tuple[int, int], ...]:
        """Inputs and outputs of each convolution."""
        return tuple(pairwise((self.image[0], *self.filters)))

    @property
    def grid(self) -> tuple[int, int, int]:
        """Channels, height and width of what the first dense layer sees."""
        side = self.image[1]
        for _ in self.filters:
            side = (side + 2 * self.padding - 4) // 2
        return (self.channels[-1][1] if self.filters else self.image[0], side, side)

    @property
    def widths(self) -> tuple[tuple[int, int], ...]:
        """Inputs and outputs of each dense layer."""
        return tuple(pairwise((int(np.prod(self.grid)), *self.hidden, self.classes)))

    def shapes(self) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
        """Shapes of weight and bias of each layer, in PyTorch's order."""
        yield from (((b, a, 5, 5), (b,)) for a, b in self.channels)
        yield from (((b, a), (b,)) for a, b in self.widths)


ARCHITECTURES = {
    "mlp": Architecture((1, 28, 28), (), 0, (200,), 10),
    "lenet28": Architecture((1, 28, 28), (6, 16), 0, (120, 84), 10),
    "lenet32": Architecture((3, 32, 32), (6, 16), 0, (120, 84), 10),
    "leaf": Architecture((1, 28, 28), (32, 64), 2, (2048,), 62),
}

CELLS = (
    *(f"{model}-M20-B{batch}" for model in ARCHITECTURES for batch in (10, 100)),
    "mlp-M20-B10-eval",
    "lenet28-M20-B10-eval",
)


@dataclass(frozen=True)
class Problem:
    """One round of local training of M clients with n samples each.

    Attributes:
        cell, samples, lr: what names it, see `build_problem`.
        model: key of `ARCHITECTURES`.
        pixels: uint8 [M, n, channels, height, width].
        labels: int64 [M, n].
        permutations: [M, epochs, n], the order in which each client sees its samples.
        batch_size: of plain SGD, without momentum.
        start: float32 [P], the start parameters of every client in PyTorch's order.
        test_pixels: uint8 [tests, channels, height, width], the same for all clients, or none.
        test_labels: int64 [tests].
    """

    cell: str
    samples: int | None
    lr: float
    model: str
    pixels: np.ndarray
    labels: np.ndarray
    permutations: np.ndarray
    batch_size: int
    start: np.ndarray
    test_pixels: np.ndarray
    test_labels: np.ndarray

    @property
    def architecture(self) -> Architecture:
        """The network's layers."""
        return ARCHITECTURES[self.model]

    @property
    def clients(self) -> int:
        """Number of clients, M."""
        return len(self.labels)

    @cached_property
    def inputs(self) -> np.ndarray:
        """Normalised images, float32 [M, n, channels, height, width]."""
        return _normalised(self.pixels)

    @cached_property
    def test_inputs(self) -> np.ndarray:
        """Normalised test images, float32 [tests, channels, height, width]."""
        return _normalised(self.test_pixels)

    def order(self, client: int) -> np.ndarray:
        """The client's samples one after another, all epochs; its batches are equal slices."""
        return self.permutations[client].reshape(-1)


def build_problem(cell: str, samples: int | None = None, lr: float = LR) -> Problem:
    """The problem of a cell such as "mlp-M20-B10" (model, clients, batch size).

    Args:
        cell: see `CELLS`; other numbers of clients are fine too.
        samples: per client instead of the cell's own number.
        lr: learning rate.
    """
    model, clients, batch_size, *evaluation = cell.split("-")
    M, batch = int(clients[1:]), int(batch_size[1:])
    n = samples or ((50 if batch == 10 else 100) if model == "leaf" else 200)
    architecture = ARCHITECTURES[model]
    rng = np.random.default_rng(SEED)
    tests = TESTS if evaluation else 0
    return Problem(
        cell,
        samples,
        lr,
        model,
        rng.integers(256, size=(M, n, *architecture.image), dtype=np.uint8),
        rng.integers(architecture.classes, size=(M, n)),
        _permutations(M, n),
        batch,
        _start(architecture),
        rng.integers(256, size=(tests, *architecture.image), dtype=np.uint8),
        rng.integers(architecture.classes, size=tests),
    )


def single_step(cell: str) -> Problem:
    """The problem of a cell cut to one batch per client, for the gate."""
    return build_problem(cell, int(cell.split("-")[2][1:]), STEP_LR)


def _normalised(pixels: np.ndarray) -> np.ndarray:
    """The operations of torchvision's ToTensor and Normalize, in their order."""
    return (pixels.astype(np.float32) / np.float32(255) - MEAN) / DEVIATION


def _permutations(clients: int, samples: int) -> np.ndarray:
    """[M, 1, n]: the very draws our engine makes, so that it runs as its users run it."""
    return np.stack(
        [
            generator(SEED, "batches", client, ROUND, 0).permutation(samples)[None]
            for client in range(clients)
        ]
    )


def _start(architecture: Architecture) -> np.ndarray:
    """Start parameters from PyTorch's default law: uniform within 1 / sqrt(inputs of the unit)."""
    rng = np.random.default_rng(SEED + 1)
    parts = []
    for weight, bias in architecture.shapes():
        bound = float(np.prod(weight[1:])) ** -0.5
        parts += [rng.uniform(-bound, bound, int(np.prod(shape))) for shape in (weight, bias)]
    return np.concatenate(parts).astype(np.float32)
