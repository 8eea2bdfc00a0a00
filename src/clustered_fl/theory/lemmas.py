"""Lemmas 2 to 4 of the proof of CFL's separation theorem (arXiv supplement VIII-A)."""

import numpy as np

from clustered_fl.theory.bounds import noise_bound
from clustered_fl.theory.search import (
    Check,
    Margin,
    Search,
    cosine,
    in_ball,
    pooled,
    search,
    wild_start,
)
from clustered_fl.theory.spanning import weakest_links

DIMENSIONS = (2, 3, 5, 20)
# Two vectors that sum to zero are opposite, so that k = 2 has nothing to find.
VECTORS = (3, 4, 5, 6, 7, 8)


def lemma_2(random: np.random.Generator, starts: int, steps: int) -> Check:
    """Two noisy versions of one vector are at least `H` similar (eq. 58)."""
    found = _over_dimensions(_lemma_2_margin, 3, random, starts, steps)
    return found.row("lemma_2", "arXiv eq. (58)", "holds")


def lemma_3_corrected(random: np.random.Generator, starts: int, steps: int) -> Check:
    """Noisy versions of two vectors, with |Y| measured against |w|: what the proof shows."""
    found = _over_dimensions(_lemma_3_corrected_margin, 4, random, starts, steps)
    return found.row("lemma_3_corrected", "arXiv eqs. (65) to (68)", "holds with |Y|/|w|")


def lemma_3_printed(random: np.random.Generator, starts: int, steps: int) -> Check:
    """Lemma 3 as printed, with |Y| measured against |v|: a misprint that must fail."""
    found = _over_dimensions(_lemma_3_printed_margin, 4, random, starts, steps)
    return found.row("lemma_3_printed", "arXiv eqs. (65) to (68)", "false: |Y|/|v| is a misprint")


def lemma_4(random: np.random.Generator, starts: int, steps: int) -> Check:
    """Vectors that sum to zero can be cut with similarities of at most cos(pi/(k-1)) (eq. 82).

    Half of the climbs start at random, half near the worst case known (see `fan`).
    """
    found = []
    for vectors in VECTORS:
        for dimension in DIMENSIONS:
            wild = wild_start(random, starts // 2, vectors, dimension)
            fans = _fans(random, starts - starts // 2, vectors, dimension)
            found.append(search(_lemma_4_margin, np.concatenate([wild, fans]), random, steps))
    return pooled(found).row("lemma_4", "arXiv eq. (82)", "holds, also for d > 2")


def lemma_4_fan(tilt: float = 1e-6) -> Check:
    """How close a fan comes to the bound of Lemma 4.

    k vectors at equal angles over a half turn would attain it, but then only the outer two can
    cancel, and the inner weights would be zero. Opening the fan by `tilt` radians makes all weights
    positive. So the bound is best possible and, for k > 2, never attained.
    """
    margins = np.array([_lemma_4_margin(fan(vectors, tilt)[None])[0] for vectors in VECTORS])
    note = "negative: approached, never attained (k > 2)"
    return Check(
        check="lemma_4_fan",
        source="arXiv eqs. (82), (91)",
        trials=len(margins),
        violations=int((margins >= 0).sum()),
        value=float(margins.min()),
        value_name=f"smallest left side minus right side at a tilt of {tilt}",
        note=note,
    )


def fan(vectors: int, tilt: float) -> np.ndarray:
    """Plane vectors [vectors, 2] that sum to zero, at equal angles over a half turn plus 2 `tilt`.

    The inner vectors point up and are as short as the outer two, which point down by `tilt`, need
    to cancel them.
    """
    angles = np.linspace(-tilt, np.pi + tilt, vectors)
    directions = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    inner = directions[1:-1, 1].sum()
    directions[1:-1] *= 2 * np.sin(tilt) / inner
    return directions


def _fans(random: np.random.Generator, starts: int, vectors: int, dimension: int) -> np.ndarray:
    """Fans of random tilt in the first two of `dimension` coordinates, plus noise of that size."""
    tilts = 10.0 ** random.uniform(-4, -1, starts)
    states = tilts[:, None, None] * random.standard_normal((starts, vectors, dimension)) / 10
    states[:, :, :2] += np.stack([fan(vectors, tilt) for tilt in tilts])
    return states


def _over_dimensions(
    margin: Margin, vectors: int, random: np.random.Generator, starts: int, steps: int
) -> Search:
    found = [
        search(margin, wild_start(random, starts, vectors, dimension), random, steps)
        for dimension in DIMENSIONS
    ]
    return pooled(found)


def _lemma_2_margin(state: np.ndarray) -> np.ndarray:
    """State [starts, 3, dimension]: v and what becomes X and Y."""
    v = state[:, 0]
    length = np.linalg.norm(v, axis=-1)
    x, y = in_ball(state[:, 1], length), in_ball(state[:, 2], length)
    bound = noise_bound(_ratio(x, v), _ratio(y, v))
    return bound - cosine(v + x, v + y)


def _lemma_3_corrected_margin(state: np.ndarray) -> np.ndarray:
    v, w, x, y = _lemma_3_vectors(state)
    return _lemma_3_margin(v, w, x, y, noise_bound(_ratio(x, v), _ratio(y, w)))


def _lemma_3_printed_margin(state: np.ndarray) -> np.ndarray:
    v, w, x, y = _lemma_3_vectors(state)
    ratio = _ratio(y, v)
    bound = noise_bound(_ratio(x, v), np.minimum(ratio, 1))
    return np.where(ratio < 1, _lemma_3_margin(v, w, x, y, bound), -np.inf)


def _lemma_3_vectors(state: np.ndarray) -> tuple[np.ndarray, ...]:
    """State [starts, 4, dimension]: v, w and what becomes X and Y."""
    v, w = state[:, 0], state[:, 1]
    x = in_ball(state[:, 2], np.linalg.norm(v, axis=-1))
    y = in_ball(state[:, 3], np.linalg.norm(w, axis=-1))
    return v, w, x, y


def _lemma_3_margin(
    v: np.ndarray, w: np.ndarray, x: np.ndarray, y: np.ndarray, noise: np.ndarray
) -> np.ndarray:
    true = np.clip(cosine(v, w), -1, 1)
    bound = true * noise + np.sqrt(1 - true**2) * np.sqrt(np.maximum(0, 1 - noise**2))
    return np.where(true <= noise, cosine(v + x, w + y) - bound, -np.inf)


def _lemma_4_margin(state: np.ndarray) -> np.ndarray:
    """State [starts, k, dimension]; weights are no loss, as angles ignore positive factors."""
    vectors = state - state.mean(axis=1, keepdims=True)
    similarity = cosine(vectors[:, :, None], vectors[:, None, :])
    return weakest_links(similarity).similarity - np.cos(np.pi / (state.shape[1] - 1))


def _ratio(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    return np.linalg.norm(part, axis=-1) / np.linalg.norm(whole, axis=-1)
