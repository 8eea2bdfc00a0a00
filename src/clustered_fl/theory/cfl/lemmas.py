"""Lemmas 2 to 4 of the proof of CFL's separation theorem (arXiv supplement VIII-A)."""

from functools import partial
from itertools import product

import numpy as np

from clustered_fl.theory import search
from clustered_fl.theory.cfl.bounds import noise_bound
from clustered_fl.theory.cfl.spanning import weakest_links
from clustered_fl.theory.search import Check, cosine, in_ball, ratio

DIMENSIONS = (2, 3, 5, 20)
# Two vectors that sum to zero are opposite, so k = 2 is trivial.
VECTORS = (3, 4, 5, 6, 7, 8)


def lemma_2(random: np.random.Generator, starts: int, steps: int) -> Check:
    """Two noisy versions of one vector are at least `H` similar (eq. 58)."""
    found = _over_dimensions(_lemma_2_margin, 3, random, starts, steps)
    return found.row("lemma_2", "arXiv eq. (58)", "holds")


def lemma_3_corrected(random: np.random.Generator, starts: int, steps: int) -> Check:
    """Noisy versions of two vectors, with |Y| measured against |w|: what the proof shows."""
    margin = partial(_lemma_3_margin, printed=False)
    found = _over_dimensions(margin, 4, random, starts, steps)
    return found.row("lemma_3_corrected", "arXiv eqs. (65) to (68)", "holds with |Y|/|w|")


def lemma_3_printed(random: np.random.Generator, starts: int, steps: int) -> Check:
    """Lemma 3 as printed, with |Y| measured against |v|: a misprint that must fail."""
    margin = partial(_lemma_3_margin, printed=True)
    found = _over_dimensions(margin, 4, random, starts, steps)
    return found.row("lemma_3_printed", "arXiv eqs. (65) to (68)", "false: |Y|/|v| is a misprint")


def lemma_4(random: np.random.Generator, starts: int, steps: int) -> Check:
    """Vectors that sum to zero can be cut with similarities of at most cos(pi/(k-1)) (eq. 82).

    Half of the climbs start at random, half near the worst case known, noisy fans of random tilt.
    """
    found = []
    for vectors, dimension in product(VECTORS, DIMENSIONS):
        wild = search.wild_start(random, starts // 2, vectors, dimension)
        tilts = 10.0 ** random.uniform(-4, -1, starts - starts // 2)
        fans = tilts[:, None, None] * random.standard_normal((len(tilts), vectors, dimension)) / 10
        fans[:, :, :2] += np.stack([fan(vectors, tilt) for tilt in tilts])
        found.append(search.search(_lemma_4_margin, np.concatenate([wild, fans]), random, steps))
    return search.pooled(found).row("lemma_4", "arXiv eq. (82)", "holds, also for d > 2")


def lemma_4_fan(tilt: float = 1e-6) -> Check:
    """Distance of a fan of vectors from the bound of Lemma 4.

    k vectors at equal angles over a half turn would attain it, but then only the outer two cancel,
    and the inner weights are zero. Opening the fan by `tilt` radians makes all weights positive. So
    the bound is best possible and, for k > 2, never attained.
    """
    margins = np.array([_lemma_4_margin(fan(vectors, tilt)[None])[0] for vectors in VECTORS])
    source, note = "arXiv eqs. (82), (91)", "negative: approached, never attained (k > 2)"
    name = f"smallest left side minus right side at a tilt of {tilt}"
    return search.counted("lemma_4_fan", source, margins >= 0, margins.min(), name, note)


def fan(vectors: int, tilt: float) -> np.ndarray:
    """Plane vectors [vectors, 2] that sum to zero, equally spaced over the angle pi + 2 `tilt`."""
    angles = np.linspace(-tilt, np.pi + tilt, vectors)
    directions = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    directions[1:-1] *= 2 * np.sin(tilt) / directions[1:-1, 1].sum()
    return directions


def _over_dimensions(
    margin: search.Margin, vectors: int, random: np.random.Generator, starts: int, steps: int
) -> search.Search:
    found = []
    for dimension in DIMENSIONS:
        start = search.wild_start(random, starts, vectors, dimension)
        found.append(search.search(margin, start, random, steps))
    return search.pooled(found)


def _lemma_2_margin(state: np.ndarray) -> np.ndarray:
    """State [starts, 3, dimension]: v and what becomes X and Y."""
    v = state[:, 0]
    length = np.linalg.norm(v, axis=-1)
    x, y = in_ball(state[:, 1], length), in_ball(state[:, 2], length)
    return noise_bound(ratio(x, v), ratio(y, v)) - cosine(v + x, v + y)


def _lemma_3_margin(state: np.ndarray, printed: bool) -> np.ndarray:
    """State [starts, 4, dimension]: v, w and what becomes X and Y."""
    v, w = state[:, 0], state[:, 1]
    x = in_ball(state[:, 2], np.linalg.norm(v, axis=-1))
    y = in_ball(state[:, 3], np.linalg.norm(w, axis=-1))
    second = ratio(y, v if printed else w)
    noise = noise_bound(ratio(x, v), np.minimum(second, 1))
    true = np.clip(cosine(v, w), -1, 1)
    bound = true * noise + np.sqrt(1 - true**2) * np.sqrt(np.maximum(0, 1 - noise**2))
    return np.where((second < 1) & (true <= noise), cosine(v + x, w + y) - bound, -np.inf)


def _lemma_4_margin(state: np.ndarray) -> np.ndarray:
    """State [starts, k, dimension]; weights are no loss, as angles ignore positive factors."""
    vectors = state - state.mean(axis=1, keepdims=True)
    cut = weakest_links(search.similarities(vectors)).similarity
    return cut - np.cos(np.pi / (state.shape[1] - 1))
