"""Simulated client gradients: one true direction per group plus noise per client."""

from typing import Literal, NamedTuple, get_args

import numpy as np

Noise = Literal["gauss", "fixed"]
NOISES: tuple[Noise, ...] = get_args(Noise)


class NoisyGradients(NamedTuple):
    """Gradients `v_I(i) + gamma X_i` as inner products, so that one draw serves all noise levels.

    signal, mixed, noise: [trials, clients, clients]: inner products of the true gradients, both
        mixed products added up, and those of the noise. Clients are ordered by group.
    """

    signal: np.ndarray
    mixed: np.ndarray
    noise: np.ndarray

    def similarity(self, gamma: float) -> np.ndarray:
        """Cosines between the gradients [trials, clients, clients] at noise level gamma."""
        products = self.signal + gamma * self.mixed + gamma**2 * self.noise
        length = np.sqrt(_diagonals(products))
        products /= length[:, :, None]
        products /= length[:, None, :]
        return products

    def ratios(self, gamma: float) -> np.ndarray:
        """Noise over signal, `gamma_i` [trials, clients] (CFL eq. 16)."""
        return gamma * np.sqrt(_diagonals(self.noise) / _diagonals(self.signal))


def draw_gradients(
    random: np.random.Generator,
    *,
    trials: int,
    groups: int,
    clients_per_group: int = 3,
    dimension: int,
    noise: Noise = "fixed",
) -> NoisyGradients:
    """Draw normally distributed true gradients and noise, as in CFL's Fig. 3.

    The true gradients are centred, as they sum to zero at a stationary point of the federation's
    risk (eq. 11); the paper does not say how it drew them. Noise is scaled so that gamma is the
    figure's `gamma_max`, the largest ratio `gamma_i` (eq. 29): "gauss", as in the paper, is normal
    with the same scale for all clients of a trial; with "fixed" noise all ratios equal gamma.
    """
    centres = random.standard_normal((trials, groups, dimension))
    centres -= centres.mean(axis=1, keepdims=True)
    signal = np.repeat(centres, clients_per_group, axis=1)
    error = random.standard_normal(signal.shape)
    scale = np.linalg.norm(signal, axis=2) / np.linalg.norm(error, axis=2)
    if noise == "gauss":
        scale = scale.min(axis=1, keepdims=True)
    error *= scale[:, :, None]
    mixed = signal @ error.mT
    return NoisyGradients(signal @ signal.mT, mixed + mixed.mT, error @ error.mT)


def _diagonals(matrices: np.ndarray) -> np.ndarray:
    return np.diagonal(matrices, axis1=1, axis2=2)
