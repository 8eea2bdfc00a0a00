"""Quadratic costs of clients with FLT's averaging, for tests of Theorem 2."""

from typing import Literal, NamedTuple

import numpy as np

from clustered_fl.theory.flt.averaging_code import blocks

Averaging = Literal["own", "others", "overlapping"]
Start = Literal["common", "best", "own"]

# Standard deviation of the clients' minima around those of their group.
SPREAD = 0.3
# Probability that two clients are related in a matrix without groups.
RELATED = 0.3


class Case(NamedTuple):
    """What is drawn at random.

    averaging: A of the groups whose minima are close, of groups drawn apart from the minima, or of
        a relatedness matrix without groups.
    start: one random model for all, the best single model for all, or a random one each.
    steps: range of the step size, in units of the largest admissible one.
    """

    averaging: Averaging
    start: Start
    steps: tuple[float, float]


CASES = {
    "matched": Case("own", "common", (0.01, 0.99)),
    "mismatched": Case("others", "common", (0.01, 0.99)),
    "overlapping": Case("overlapping", "best", (0.01, 0.99)),
    "unequal start": Case("own", "own", (0.01, 0.99)),
    "large step": Case("own", "common", (1.01, 2.0)),
}


class Quadratics(NamedTuple):
    """Costs (w - o)' H (w - o) / 2: curvature H [federations, clients, d, d], minima o [.., d]."""

    curvature: np.ndarray
    minima: np.ndarray

    def gradients(self, models: np.ndarray) -> np.ndarray:
        """Of every client's cost at its own model [federations, clients, d]."""
        return np.einsum("fcij,fcj->fci", self.curvature, models - self.minima)

    def cost(self, models: np.ndarray) -> np.ndarray:
        """F(W), the sum over clients [federations]."""
        return (self.gradients(models) * (models - self.minima)).sum(axis=(1, 2)) / 2

    def smoothness(self) -> np.ndarray:
        """L_W: the largest curvature of any client [federations]."""
        return np.linalg.eigvalsh(self.curvature)[..., -1].max(axis=1)

    def best_common(self) -> np.ndarray:
        """The model that is best for all clients together [federations, d]."""
        pull = np.einsum("fcij,fcj->fi", self.curvature, self.minima)
        return np.linalg.solve(self.curvature.sum(axis=1), pull[..., None])[..., 0]


class Path(NamedTuple):
    """|W^t - W^(t-1)|^2 for t = 1..T [T, federations], and F(W^t) for t = 0..T."""

    moved: np.ndarray
    cost: np.ndarray


def quadratics(
    random: np.random.Generator, federations: int, group: np.ndarray, dimension: int
) -> Quadratics:
    """Random curvatures, and minima around that of each client's group [clients]."""
    shape = (federations, len(group), dimension)
    roots = random.standard_normal((*shape, dimension))
    centres = random.standard_normal((federations, group.max() + 1, dimension))
    minima = centres[:, group] + SPREAD * random.standard_normal(shape)
    return Quadratics(roots @ roots.mT / dimension, minima)


def relatedness(
    random: np.random.Generator, averaging: Averaging, federations: int, group: np.ndarray
) -> np.ndarray:
    """Which clients average with each other [federations, clients, clients], 0/1, symmetric."""
    if averaging == "overlapping":
        shape = (federations, len(group), len(group))
        upper = np.triu(random.random(shape) < RELATED, 1)
        return upper + upper.mT + np.eye(len(group))
    drawn = np.tile(group, (federations, 1))
    drawn = random.permuted(drawn, axis=1) if averaging == "others" else drawn
    return blocks(drawn)


def first_models(random: np.random.Generator, start: Start, costs: Quadratics) -> np.ndarray:
    """W^0 [federations, clients, d]."""
    if start == "own":
        return random.standard_normal(costs.minima.shape)
    random_start = random.standard_normal(costs.minima[:, 0].shape)
    common = costs.best_common() if start == "best" else random_start
    return np.repeat(common[:, None], costs.minima.shape[1], axis=1)


def descend(
    costs: Quadratics, averaging: np.ndarray, models: np.ndarray, step: np.ndarray, rounds: int
) -> Path:
    """Full gradient steps of all clients, each followed by averaging (Algorithm 3, lines 9, 17).

    averaging: A [federations, clients, clients]; models: W^0 [.., clients, d]; step: eta [..].
    """
    moved, cost = [], [costs.cost(models)]
    for _ in range(rounds):
        after = averaging @ (models - step[:, None, None] * costs.gradients(models))
        moved.append(((after - models) ** 2).sum(axis=(1, 2)))
        cost.append(costs.cost(after))
        models = after
    return Path(np.array(moved), np.array(cost))
