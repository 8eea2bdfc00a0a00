"""CFL Fig. 2: federated gradient descent in the plane, on congruent and incongruent risks."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from clustered_fl.methods.groups import cosine_similarity
from clustered_fl.randomness import generator
from clustered_fl.theory.ranges import require_at_least, require_positive
from clustered_fl.theory.tables import stacked


@dataclass(frozen=True)
class Bowls:
    """Quadratic risks 1/2 (theta - c)' A (theta - c), one per client; each vanishes at one point.

    centres: [clients, 2]; curvature: [clients, 2, 2], symmetric and positive definite.
    """

    centres: np.ndarray
    curvature: np.ndarray

    def risks(self, theta: np.ndarray) -> np.ndarray:
        """Risk of each client at points [..., 2] -> [..., clients]."""
        offset = theta[..., None, :] - self.centres
        return np.einsum("...ci,cij,...cj->...c", offset, self.curvature, offset) / 2

    def gradients(self, theta: np.ndarray) -> np.ndarray:
        """Gradient of each client's risk at one point [2] -> [clients, 2]."""
        return np.einsum("cij,cj->ci", self.curvature, theta - self.centres)


@dataclass(frozen=True)
class Discs:
    """Risks max(0, |theta - c| - radius)^2, one per client; each vanishes on a whole disc.

    centres: [clients, 2].
    """

    centres: np.ndarray
    radius: float

    def risks(self, theta: np.ndarray) -> np.ndarray:
        """Risk of each client at points [..., 2] -> [..., clients]."""
        return self._beyond(theta[..., None, :] - self.centres) ** 2

    def gradients(self, theta: np.ndarray) -> np.ndarray:
        """Gradient of each client's risk at one point [2] -> [clients, 2]."""
        offset = theta - self.centres
        distance = np.maximum(np.linalg.norm(offset, axis=1), self.radius)
        return 2 * (self._beyond(offset) / distance)[:, None] * offset

    def _beyond(self, offset: np.ndarray) -> np.ndarray:
        return np.maximum(0, np.linalg.norm(offset, axis=-1) - self.radius)


@dataclass(frozen=True)
class Problem:
    """A toy federation: risks, the group of each client [clients], and where descent starts [2]."""

    name: str
    risks: Bowls | Discs
    groups: np.ndarray
    start: np.ndarray


CENTRES = np.array([[-1.0, 0.0], [1.0, 0.0]])
CURVATURES = np.array([[[1.2, 0.2], [0.2, 1.0]], [[1.0, -0.3], [-0.3, 1.4]]])


def optimisation_paths(
    seed: int,
    *,
    learning_rate: float = 0.05,
    rounds: int = 200,
    client_noise: float = 0.1,
    disc_radius: float = 1.2,
    grid_points: int = 81,
    grid_limit: float = 3.0,
) -> dict[str, pd.DataFrame]:
    """Follow federated gradient descent on three plane problems.

    "four clients" (TNNLS version): two clients in each of two incongruent groups. "incongruent"
    and "congruent" (arXiv version): two clients; in the latter both risks vanish where two discs
    overlap. The papers give no loss functions; these are ours.

    Args:
        client_noise: standard deviation of the clients' minima around their group's.
        disc_radius: the discs overlap if above 1, half the distance of their centres.
        grid_points: the landscape is sampled on this many points per axis, from -grid_limit to
            grid_limit.
    Returns:
        path: problem, round, theta1, theta2.
        cosines: problem, round, first, second (clients), relation ("intra" or "cross"), cosine.
        norms: problem, round, mean_gradient_norm, max_gradient_norm (eqs. 30, 31).
        clients: problem, client, group, centre1, centre2, gradient1, gradient2 (after the last
            round).
        landscape: problem, theta1, theta2, risk_group0, risk_group1, risk_mean, vanishes (both
            risks are zero: the grey region).
    Raises:
        InputError: for settings out of range.
    Source: CFL Fig. 2 of either version.
    """
    require_positive(learning_rate=learning_rate, disc_radius=disc_radius, grid_limit=grid_limit)
    require_at_least(2, grid_points=grid_points)
    require_at_least(0, rounds=rounds, client_noise=client_noise)
    axis = np.linspace(-grid_limit, grid_limit, grid_points)
    parts = {}
    for problem in _problems(generator(seed, "optimisation_paths"), client_noise, disc_radius):
        path = descend(problem, learning_rate, rounds)
        parts[problem.name] = _along(problem, path) | {"landscape": _landscape(problem, axis)}
    return stacked(parts, "problem")


def _problems(random: np.random.Generator, noise: float, radius: float) -> list[Problem]:
    group, pair = np.array([0, 0, 1, 1]), np.array([0, 1])
    centres = CENTRES[group] + noise * random.standard_normal((4, 2))
    start = np.array([0.3, 2.7])
    return [
        Problem("four clients", Bowls(centres, CURVATURES[group]), group, start),
        Problem("incongruent", Bowls(CENTRES, CURVATURES), pair, start),
        Problem("congruent", Discs(CENTRES, radius), pair, start),
    ]


def descend(problem: Problem, learning_rate: float, rounds: int) -> np.ndarray:
    """Points [rounds + 1, 2] that gradient descent on the mean of the clients' risks visits."""
    path = [problem.start]
    for _ in range(rounds):
        path.append(path[-1] - learning_rate * problem.risks.gradients(path[-1]).mean(axis=0))
    return np.array(path)


def _along(problem: Problem, path: np.ndarray) -> dict[str, pd.DataFrame]:
    """Tables of what happens along the path: points, cosines, norms, and the clients at its end."""
    gradients = np.array([problem.risks.gradients(theta) for theta in path])
    number = np.arange(len(path))
    points = pd.DataFrame({"round": number, "theta1": path[:, 0], "theta2": path[:, 1]})
    norms = {
        "mean_gradient_norm": np.linalg.norm(gradients.mean(axis=1), axis=1),
        "max_gradient_norm": np.linalg.norm(gradients, axis=2).max(axis=1),
    }
    return {
        "path": points,
        "cosines": _cosines(gradients, problem.groups),
        "norms": pd.DataFrame({"round": number} | norms),
        "clients": _clients(problem, gradients[-1]),
    }


def _cosines(gradients: np.ndarray, groups: np.ndarray) -> pd.DataFrame:
    """Cosine of every pair of clients in every round, from gradients [rounds, clients, 2]."""
    first, second = np.triu_indices(len(groups), k=1)
    cosines = np.array([cosine_similarity(vectors)[first, second] for vectors in gradients])
    relation = np.where(groups[first] == groups[second], "intra", "cross")
    rounds, pairs = cosines.shape
    return pd.DataFrame(
        {
            "round": np.repeat(np.arange(rounds), pairs),
            "first": np.tile(first, rounds),
            "second": np.tile(second, rounds),
            "relation": np.tile(relation, rounds),
            "cosine": cosines.ravel(),
        }
    )


def _clients(problem: Problem, gradients: np.ndarray) -> pd.DataFrame:
    centres = problem.risks.centres
    columns = {"client": np.arange(len(centres)), "group": problem.groups}
    places = {"centre1": centres[:, 0], "centre2": centres[:, 1]}
    arrows = {"gradient1": gradients[:, 0], "gradient2": gradients[:, 1]}
    return pd.DataFrame(columns | places | arrows)


def _landscape(problem: Problem, axis: np.ndarray) -> pd.DataFrame:
    theta = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    risks = problem.risks.risks(theta)
    columns = {"theta1": theta[:, 0], "theta2": theta[:, 1]}
    for group in (0, 1):
        columns[f"risk_group{group}"] = risks[:, problem.groups == group].mean(axis=1)
    columns |= {"risk_mean": risks.mean(axis=1), "vanishes": (risks == 0).all(axis=1)}
    return pd.DataFrame(columns)
