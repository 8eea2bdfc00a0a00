"""CFL's Theorem 1 put to the test, in three readings, with a counterexample to the weakest."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd

from clustered_fl.methods.groups import bipartition, cosine_similarity, is_correct
from clustered_fl.theory.bounds import (
    cross_bound,
    guaranteed_noise,
    noise_bound,
    separation_theorem,
)
from clustered_fl.theory.search import (
    Check,
    Search,
    cosine,
    in_ball,
    pooled,
    search,
    wild_start,
)
from clustered_fl.theory.spanning import weakest_links, weakest_within

GROUPS = (2, 3, 4, 5)
DIMENSIONS = (2, 3, 7)
CLIENTS_PER_GROUP = 3


def theorem_1_intra(random: np.random.Generator, starts: int, steps: int) -> Check:
    """Similarities within a group are at least the smallest `H` (eq. 19)."""
    found = _over_settings(_intra_margin, GROUPS, random, starts, steps)
    return found.row("theorem_1_intra", "eq. (19)", "holds")


def theorem_1_cross(random: np.random.Generator, starts: int, steps: int) -> Check:
    """The best cut is at most the bound of the noisiest pair of different groups (eq. 17)."""
    found = _over_settings(_cross_margin, GROUPS, random, starts, steps)
    note = "holds, with i, j read as the noisiest clients of different groups"
    return found.row("theorem_1_cross", "eq. (17)", note)


def remark_1(random: np.random.Generator, starts: int, steps: int) -> Check:
    """With two groups the best cut is at most `max -H` (eq. 20)."""
    found = _over_settings(_cross_margin, (2,), random, starts, steps)
    return found.row("remark_1", "eq. (20)", "holds")


def theorem_1_own_pairs(random: np.random.Generator, starts: int, steps: int) -> Check:
    """Eq. (17) with i, j restricted to the two halves of the best cut, as eqs. (17), (20) print.

    The proof bounds the pairs across *another* cut (that of the true gradients); with unequal noise
    the best cut may put the two noisiest clients in one half.
    """
    found = _over_settings(_own_pairs_margin, GROUPS, random, starts, steps)
    note = "false for unequal noise: i, j must range over all pairs of different groups"
    return found.row("theorem_1_own_pairs", "eqs. (17), (20)", note)


def theorem_1_empirical(random: np.random.Generator, starts: int, steps: int) -> Check:
    """Eq. (17) where the clients' gradients sum to zero instead of the true ones.

    Federated learning converges where the *empirical* gradients cancel (eq. 30); the proof needs
    that the true ones do (eq. 104), which follows only without noise.
    """
    found = _over_settings(_empirical_margin, GROUPS, random, starts, steps)
    note = "false: the theorem needs a stationary point of the true risk"
    return found.row("theorem_1_empirical", "eqs. (17), (104)", note)


def remark_1_empirical(random: np.random.Generator, starts: int, steps: int) -> Check:
    """Remark 1 repaired for client gradients that sum to zero: angles >= pi - 4 asin(gamma).

    Let p and -q be the true gradients of the two groups times their weights. Their sum is minus
    the mean noise, |p - q| <= gamma (|p| + |q|), so p and q differ by at most 2 asin(gamma); the
    noise of two clients takes away as much again. Separation is then certain for gamma < 1/2,
    instead of gamma < sin(pi/4).
    """
    found = _over_settings(_repaired_margin, (2,), random, starts, steps)
    return found.row("remark_1_empirical", "repair of eq. (20)", "holds: certain for gamma < 1/2")


def counterexample(gamma: float = 0.69) -> pd.DataFrame:
    """Four clients in the plane that Theorem 1 promises to separate, and the cut does not.

    K = 2, two clients per group, every ratio equal to `gamma` < sin(pi/4). The client gradients sum
    to zero, so that federated learning rests there, but the true gradients do not. By symmetry
    either of the two lower clients (1 and 3) may be the one that is cut off.

    Returns: client, group, half, gradient1, gradient2 (the client's), true1, true2 (its group's).
    """
    true, clients = _resting_point(gamma)
    cut = bipartition(cosine_similarity(clients))
    number = np.arange(len(clients))
    return pd.DataFrame(
        {
            "client": number,
            "group": number // 2,
            "half": np.isin(number, cut.second).astype(int),
            "gradient1": clients[:, 0],
            "gradient2": clients[:, 1],
            "true1": true[:, 0],
            "true2": true[:, 1],
        }
    )


def theorem_1_counterexample(gamma: float = 0.69) -> Check:
    """Whether the four clients of `counterexample` are promised separation and not separated."""
    table = counterexample(gamma)
    clients = table[["gradient1", "gradient2"]].to_numpy()
    cut = bipartition(cosine_similarity(clients))
    groups = table["group"].to_numpy()
    promised = gamma < guaranteed_noise(2)
    return Check(
        check="theorem_1_counterexample",
        source="Theorem 1, Corollary 1, eq. (104)",
        trials=1,
        violations=int(promised and not is_correct(cut, groups)),
        value=float(np.linalg.norm(clients.sum(axis=0))),
        value_name="length of the sum of the client gradients",
        note=f"four clients with gamma = {gamma} in the green area, divided wrongly",
    )


def _resting_point(gamma: float) -> tuple[np.ndarray, np.ndarray]:
    """True gradients and client gradients [4, 2]: up and down of group 0, up and down of group 1.

    The picture is symmetric about the vertical axis. One client of a group is turned upwards as
    far as its noise can turn it, by asin(gamma); the noise of the other points straight down. The
    true gradients rise by the angle `rise` at which the vertical parts cancel:
    2 sin(rise) + gamma cos(rise + turn) - gamma = 0.
    """
    turn = np.arcsin(gamma)
    sine, cosine_part = 2 - gamma**2, gamma * np.cos(turn)
    rise = np.arcsin(gamma / np.hypot(sine, cosine_part)) - np.arctan2(cosine_part, sine)
    true = np.array([np.cos(rise), np.sin(rise)])
    up = np.cos(turn) * np.array([np.cos(rise + turn), np.sin(rise + turn)])
    down = true - [0, gamma]
    mirror = np.array([-1, 1])
    return (
        np.array([true, true, mirror * true, mirror * true]),
        np.array([up, down, mirror * up, mirror * down]),
    )


SettingMargin = Callable[[np.ndarray, int], np.ndarray]


def _over_settings(
    margin: SettingMargin,
    groups: tuple[int, ...],
    random: np.random.Generator,
    starts: int,
    steps: int,
) -> Search:
    """Search in every dimension and for every K; a state is [starts, K + K clients, dimension]."""
    found = []
    for count in groups:
        for dimension in DIMENSIONS:
            vectors = count * (1 + CLIENTS_PER_GROUP)
            start = wild_start(random, starts, vectors, dimension)
            found.append(search(partial(margin, groups=count), start, random, steps))
    return pooled(found)


def _instance(state: np.ndarray, groups: int, reach: float) -> tuple[np.ndarray, np.ndarray]:
    """True gradients that sum to zero, per client, and noise below `reach` times their length."""
    true = state[:, :groups] - state[:, :groups].mean(axis=1, keepdims=True)
    true = np.repeat(true, CLIENTS_PER_GROUP, axis=1)
    return true, in_ball(state[:, groups:], reach * np.linalg.norm(true, axis=2))


def _ratios(true: np.ndarray, noise: np.ndarray) -> np.ndarray:
    return np.linalg.norm(noise, axis=2) / np.linalg.norm(true, axis=2)


def _similarity(gradients: np.ndarray) -> np.ndarray:
    return cosine(gradients[:, :, None], gradients[:, None, :])


def _informative(groups: int) -> float:
    """Noise below which `H >= cos(pi/(K-1))` for all pairs, so that eq. (17) says something."""
    return float(np.sin(np.pi / (2 * (groups - 1))))


def _intra_margin(state: np.ndarray, groups: int) -> np.ndarray:
    true, noise = _instance(state, groups, 1.0)
    bound = separation_theorem(_ratios(true, noise), groups).intra
    return bound - weakest_within(_similarity(true + noise), groups)


def _cross_margin(state: np.ndarray, groups: int) -> np.ndarray:
    true, noise = _instance(state, groups, _informative(groups))
    bound = separation_theorem(_ratios(true, noise), groups).cross
    return weakest_links(_similarity(true + noise)).similarity - bound


def _own_pairs_margin(state: np.ndarray, groups: int) -> np.ndarray:
    true, noise = _instance(state, groups, _informative(groups))
    cut = weakest_links(_similarity(true + noise))
    ratios = _ratios(true, noise)
    # H falls with either ratio, so the noisiest client of each half gives the loosest bound.
    first = np.where(cut.first, ratios, 0).max(axis=1)
    second = np.where(cut.first, 0, ratios).max(axis=1)
    return cut.similarity - cross_bound(noise_bound(first, second), groups)


def _rest(state: np.ndarray, groups: int, reach: float) -> tuple[np.ndarray, np.ndarray]:
    """Client gradients that sum to zero, and their ratios; the true gradients move for it."""
    true, noise = _instance(state, groups, reach)
    true = true - noise.mean(axis=1, keepdims=True)
    return true + noise, _ratios(true, noise)


def _empirical_margin(state: np.ndarray, groups: int) -> np.ndarray:
    clients, ratios = _rest(state, groups, _informative(groups))
    promise = separation_theorem(ratios, groups)
    margin = weakest_links(_similarity(clients)).similarity - promise.cross
    return np.where(promise.applies & (promise.cross < 1), margin, -np.inf)


def _repaired_margin(state: np.ndarray, groups: int) -> np.ndarray:
    # Re-centring raises the ratios, and the statement is empty above sin(pi/4).
    clients, ratios = _rest(state, groups, 0.6)
    angle = 4 * np.arcsin(np.minimum(ratios.max(axis=1), 1))
    margin = weakest_links(_similarity(clients)).similarity + np.cos(np.minimum(angle, np.pi))
    return np.where(angle < np.pi, margin, -np.inf)
