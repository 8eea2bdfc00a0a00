"""CFL Fig. 2: federated gradient descent in the plane, on congruent and incongruent risks."""

from typing import NamedTuple

import numpy as np
import pandas as pd
from pydantic import NonNegativeFloat, NonNegativeInt, PositiveFloat

from clustered_fl.methods.groups import cosine_similarity
from clustered_fl.randomness import generator
from clustered_fl.theory.ranges import TwoOrMore
from clustered_fl.theory.tables import leaves, stacked


class Bowls(NamedTuple):
    """Risks (theta - c)' A (theta - c) / 2: centres c [clients, 2], curvature A [clients, 2, 2]."""

    centres: np.ndarray
    curvature: np.ndarray

    def risks(self, theta: np.ndarray) -> np.ndarray:
        """Risk of each client at points [..., 2] -> [..., clients]."""
        offset = theta[..., None, :] - self.centres
        return np.einsum("...ci,cij,...cj->...c", offset, self.curvature, offset) / 2

    def gradients(self, theta: np.ndarray) -> np.ndarray:
        """Gradient of each client's risk at one point [2] -> [clients, 2]."""
        return np.einsum("cij,cj->ci", self.curvature, theta - self.centres)


class Discs(NamedTuple):
    """Risks max(0, |theta - c| - radius)^2: centres c [clients, 2]; each vanishes on a disc."""

    centres: np.ndarray
    radius: float

    def risks(self, theta: np.ndarray) -> np.ndarray:
        """Risk of each client at points [..., 2] -> [..., clients]."""
        distance = np.linalg.norm(theta[..., None, :] - self.centres, axis=-1)
        return np.maximum(0, distance - self.radius) ** 2

    def gradients(self, theta: np.ndarray) -> np.ndarray:
        """Gradient of each client's risk at one point [2] -> [clients, 2]."""
        offset = theta - self.centres
        distance = np.maximum(np.linalg.norm(offset, axis=1), self.radius)
        return 2 * ((distance - self.radius) / distance)[:, None] * offset


class Problem(NamedTuple):
    """A toy federation: risks, the group of each client [clients], and where descent starts [2]."""

    name: str
    risks: Bowls | Discs
    groups: np.ndarray
    start: np.ndarray


START = np.array([0.3, 2.7])
CENTRES = np.array([[-1.0, 0.0], [1.0, 0.0]])
CURVATURES = np.array([[[1.2, 0.2], [0.2, 1.0]], [[1.0, -0.3], [-0.3, 1.4]]])


@leaves("path", "cosines", "norms", "clients", "landscape")
def optimisation_paths(
    seed: int,
    *,
    learning_rate: PositiveFloat = 0.05,
    rounds: NonNegativeInt = 200,
    client_noise: NonNegativeFloat = 0.1,
    disc_radius: PositiveFloat = 1.2,
    grid_points: TwoOrMore = 81,
    grid_limit: PositiveFloat = 3.0,
) -> dict[str, pd.DataFrame]:
    """Follow federated gradient descent on three plane problems.

    "four clients" (TNNLS version): two clients in each of two incongruent groups. "incongruent"
    and "congruent" (arXiv version): two clients; in the latter both risks vanish where two discs
    overlap. The papers give no loss functions; these are ours.

    Args:
        client_noise: standard deviation of the clients' minima around their group's.
        disc_radius: the discs overlap if above 1, half the distance of their centres.
        grid_points: of the landscape, per axis, from -grid_limit to grid_limit.
    Returns:
        path, norms: by problem and round; norms are of the mean and largest gradient (eqs. 30, 31).
        cosines: problem, round, first, second (clients), relation ("intra" or "cross"), cosine.
        clients: problem, client, group, centre1, centre2, gradient1, gradient2 (in the end).
        landscape: risks on the grid; `vanishes`: all are zero, the grey region.
    """
    group, pair = np.array([0, 0, 1, 1]), np.array([0, 1])
    noise = generator(seed, "optimisation_paths").standard_normal((4, 2))
    four = Bowls(CENTRES[group] + client_noise * noise, CURVATURES[group])
    problems = (
        Problem("four clients", four, group, START),
        Problem("incongruent", Bowls(CENTRES, CURVATURES), pair, START),
        Problem("congruent", Discs(CENTRES, disc_radius), pair, START),
    )
    axis = np.linspace(-grid_limit, grid_limit, grid_points)
    parts = {}
    for problem in problems:
        path = descend(problem, learning_rate, rounds)
        parts[problem.name] = _along(problem, path) | {"landscape": _landscape(problem, axis)}
    return stacked(parts, "problem")


def descend(problem: Problem, learning_rate: float, rounds: int) -> np.ndarray:
    """Points [rounds + 1, 2] that gradient descent on the mean of the clients' risks visits."""
    path = [problem.start]
    for _ in range(rounds):
        path.append(path[-1] - learning_rate * problem.risks.gradients(path[-1]).mean(axis=0))
    return np.array(path)


def _along(problem: Problem, path: np.ndarray) -> dict[str, pd.DataFrame]:
    """Tables of what happens along the path: points, cosines, norms, and the clients at its end."""
    gradients = np.array([problem.risks.gradients(theta) for theta in path])
    rounds = pd.DataFrame({"round": np.arange(len(path))})
    clients = pd.DataFrame({"client": np.arange(len(problem.groups)), "group": problem.groups})
    clients[["centre1", "centre2"]] = problem.risks.centres
    clients[["gradient1", "gradient2"]] = gradients[-1]
    return {
        "path": rounds.assign(theta1=path[:, 0], theta2=path[:, 1]),
        "cosines": _cosines(rounds, gradients, problem.groups),
        "norms": rounds.assign(
            mean_gradient_norm=np.linalg.norm(gradients.mean(axis=1), axis=1),
            max_gradient_norm=np.linalg.norm(gradients, axis=2).max(axis=1),
        ),
        "clients": clients,
    }


def _cosines(rounds: pd.DataFrame, gradients: np.ndarray, groups: np.ndarray) -> pd.DataFrame:
    """Cosine of every pair of clients in every round, from gradients [rounds, clients, 2]."""
    first, second = np.triu_indices(len(groups), k=1)
    relation = np.where(groups[first] == groups[second], "intra", "cross")
    pairs = pd.DataFrame({"first": first, "second": second, "relation": relation})
    cosines = np.array([cosine_similarity(vectors)[first, second] for vectors in gradients])
    return rounds.merge(pairs, how="cross").assign(cosine=cosines.ravel())


def _landscape(problem: Problem, axis: np.ndarray) -> pd.DataFrame:
    theta = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    risks = problem.risks.risks(theta)
    table = pd.DataFrame(theta, columns=["theta1", "theta2"])
    for group in (0, 1):
        table[f"risk_group{group}"] = risks[:, problem.groups == group].mean(axis=1)
    table = table.astype(np.float32).assign(risk_mean=risks.mean(axis=1).astype(np.float32))
    return table.assign(vanishes=(risks == 0).all(axis=1))
