"""Tests of CFL's Theorem 1 in three interpretations, with a counterexample to the weakest."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product

import numpy as np
import pandas as pd

from clustered_fl.methods.groups import bipartition, cosine_similarity
from clustered_fl.theory import search
from clustered_fl.theory.cfl import bounds
from clustered_fl.theory.cfl.spanning import weakest_links, weakest_within
from clustered_fl.theory.search import Check, ratio, similarities

GROUPS = (2, 3, 4, 5)
DIMENSIONS = (2, 3, 7)
CLIENTS_PER_GROUP = 3

Margin = Callable[[np.ndarray, int], np.ndarray]


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
    return found.row(
        "remark_1_empirical", "eq. (20), corrected", "holds: certain separation for gamma < 1/2"
    )


def counterexample(gamma: float = 0.69) -> pd.DataFrame:
    """Four clients in the plane that Theorem 1 should separate, but the cut does not.

    K = 2, two clients per group, every ratio equal to `gamma` < sin(pi/4). The client gradients sum
    to zero, so that federated learning rests there, but the true gradients do not. The picture is
    symmetric about the vertical axis: either lower client (1 or 3) may be the one that is cut off.
    The upper client of a group is turned upwards by asin(gamma), as far as its noise can turn it;
    the noise of the other points straight down. The true gradients rise by the angle `rise` at
    which the vertical parts cancel: 2 sin(rise) + gamma cos(rise + turn) = gamma.
    Returns: client, group, half, gradient1, gradient2 (the client's), true1, true2 (its group's).
    """
    turn = np.arcsin(gamma)
    sine, cosine_part = 2 - gamma**2, gamma * np.cos(turn)
    rise = np.arcsin(gamma / np.hypot(sine, cosine_part)) - np.arctan2(cosine_part, sine)
    true = np.array([np.cos(rise), np.sin(rise)])
    up = np.cos(turn) * np.array([np.cos(rise + turn), np.sin(rise + turn)])
    group, mirror = np.array([up, true - [0, gamma]]), np.array([-1, 1])
    clients, number = np.concatenate([group, mirror * group]), np.arange(4)
    half = np.isin(number, bipartition(cosine_similarity(clients)).second).astype(int)
    table = pd.DataFrame({"client": number, "group": number // 2, "half": half})
    table[["gradient1", "gradient2"]] = clients
    table[["true1", "true2"]] = [true, true, mirror * true, mirror * true]
    return table


def theorem_1_counterexample(gamma: float = 0.69) -> Check:
    """Whether the four clients of `counterexample` are promised separation and not separated."""
    table = counterexample(gamma)
    divided = table.groupby("group")["half"].nunique().max() > 1
    return search.counted(
        check="theorem_1_counterexample",
        source="Theorem 1, Corollary 1, eq. (104)",
        wrong=np.array([divided and gamma < bounds.guaranteed_noise(2)]),
        value=np.linalg.norm(table[["gradient1", "gradient2"]].to_numpy().sum(axis=0)),
        value_name="length of the sum of the client gradients",
        note=f"four clients with gamma = {gamma} within the guarantee, divided incorrectly",
    )


def _over_settings(
    margin: Margin, groups: Sequence[int], random: np.random.Generator, starts: int, steps: int
) -> search.Search:
    """Search in every dimension and for every K; a state is [starts, K + K clients, dimension]."""
    found = []
    for count, dimension in product(groups, DIMENSIONS):
        start = search.wild_start(random, starts, count * (1 + CLIENTS_PER_GROUP), dimension)
        found.append(search.search(partial(margin, groups=count), start, random, steps))
    return search.pooled(found)


def _instance(
    state: np.ndarray, groups: int, reach: float | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """True gradients that sum to zero, per client, and noise below `reach` times their length.

    By default `H >= cos(pi/(K-1))` for all pairs, so that eq. (17) says something.
    """
    reach = reach or np.sin(np.pi / (2 * (groups - 1)))
    true = state[:, :groups] - state[:, :groups].mean(axis=1, keepdims=True)
    true = np.repeat(true, CLIENTS_PER_GROUP, axis=1)
    return true, search.in_ball(state[:, groups:], reach * np.linalg.norm(true, axis=2))


def _intra_margin(state: np.ndarray, groups: int) -> np.ndarray:
    true, noise = _instance(state, groups, 1.0)
    bound = bounds.separation_theorem(ratio(noise, true), groups).intra
    return bound - weakest_within(similarities(true + noise), groups)


def _cross_margin(state: np.ndarray, groups: int) -> np.ndarray:
    true, noise = _instance(state, groups)
    bound = bounds.separation_theorem(ratio(noise, true), groups).cross
    return weakest_links(similarities(true + noise)).similarity - bound


def _own_pairs_margin(state: np.ndarray, groups: int) -> np.ndarray:
    true, noise = _instance(state, groups)
    cut = weakest_links(similarities(true + noise))
    ratios = ratio(noise, true)
    # H falls with either ratio, so the noisiest client of each half gives the loosest bound.
    first = np.where(cut.first, ratios, 0).max(axis=1)
    second = np.where(cut.first, 0, ratios).max(axis=1)
    return cut.similarity - bounds.cross_bound(bounds.noise_bound(first, second), groups)


def _empirical_margin(state: np.ndarray, groups: int) -> np.ndarray:
    true, noise = _instance(state, groups)
    true = true - noise.mean(axis=1, keepdims=True)
    promise = bounds.separation_theorem(ratio(noise, true), groups)
    margin = weakest_links(similarities(true + noise)).similarity - promise.cross
    return np.where(promise.applies & (promise.cross < 1), margin, -np.inf)


def _repaired_margin(state: np.ndarray, groups: int) -> np.ndarray:
    # Re-centring raises the ratios, and the statement is empty above sin(pi/4).
    true, noise = _instance(state, groups, 0.6)
    true = true - noise.mean(axis=1, keepdims=True)
    angle = 4 * np.arcsin(np.minimum(ratio(noise, true).max(axis=1), 1))
    cut = weakest_links(similarities(true + noise)).similarity
    return np.where(angle < np.pi, cut + np.cos(np.minimum(angle, np.pi)), -np.inf)
