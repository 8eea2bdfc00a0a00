"""The bounds of CFL's separation theorem, as printed."""

from typing import NamedTuple

import numpy as np


class Guarantee(NamedTuple):
    """The guarantee of Theorem 1 for each trial.

    applies: bool, whether every client's noise ratio is below one (eq. 15).
    intra: lower bound on the smallest similarity within a group (eq. 19).
    cross: upper bound on the largest similarity across the best bipartition (eq. 17), 1 if none.
    """

    applies: np.ndarray
    intra: np.ndarray
    cross: np.ndarray

    @property
    def separates(self) -> np.ndarray:
        """Where the bounds alone make the separation gap positive: the green area of Fig. 3."""
        return self.applies & (self.intra > self.cross)


def noise_bound(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """`H` of two noise ratios in [0, 1]: cosine of the largest angle due to noise (eq. 18)."""
    return -first * second + np.sqrt(1 - first**2) * np.sqrt(1 - second**2)


def cross_bound(noise: np.ndarray, groups: int) -> np.ndarray:
    """Upper bound on similarities across K >= 2 groups, given `H`; 1 if there is none (eq. 17)."""
    angle = np.pi / (groups - 1)
    # Rounding may make H slightly larger than 1, and the root NaN.
    bound = np.cos(angle) * noise + np.sin(angle) * np.sqrt(np.maximum(0, 1 - noise**2))
    return np.where(noise >= np.cos(angle), bound, 1.0)


def separation_theorem(ratios: np.ndarray, groups: int) -> Guarantee:
    """CFL's Theorem 1, eqs. (15) to (19), for noise ratios `gamma_i` [trials, clients].

    Clients are ordered by group; groups have equal sizes (>= 2). The paper does not specify i and j
    in eq. (17). Here they are any two clients of different groups, as the proof requires: `H`
    decreases with either ratio, so the loosest pair is that of the two noisiest clients.
    """
    by_group = np.sort(np.minimum(ratios, 1).reshape(len(ratios), groups, -1), axis=2)
    noisiest = np.sort(by_group[:, :, -1], axis=1)
    intra = noise_bound(by_group[:, :, -1], by_group[:, :, -2]).min(axis=1)
    cross = cross_bound(noise_bound(noisiest[:, -1], noisiest[:, -2]), groups)
    return Guarantee(ratios.max(axis=1) < 1, intra, cross)


def guaranteed_noise(groups: int) -> float:
    """The common noise ratio below which Theorem 1 separates: 4 asin(gamma) < pi / (K - 1)."""
    return float(np.sin(np.pi / (4 * (groups - 1))))
