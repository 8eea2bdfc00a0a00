"""What linear maps do to angles: eq. (96) of the proof of Lemma 4, and eqs. (41), (42)."""

import numpy as np

from clustered_fl.methods.groups import cosine_similarity
from clustered_fl.theory.search import ROUNDING, Check, cosine
from clustered_fl.theory.spanning import weakest_links

DIMENSIONS = (3, 5, 20)
VECTORS = 6


def projection(random: np.random.Generator, trials: int) -> list[Check]:
    """Project vectors that sum to zero onto the plane of the closest pair across the best cut.

    The printed proof of Lemma 4 for d > 2 says that all other angles can only grow (eq. 96) and
    that the best cut therefore stays the best, at the same angle.
    """
    narrower, moved = zip(*(_project(random, trials, d) for d in DIMENSIONS), strict=True)
    return [
        _projection_check("projection_angles", "arXiv eq. (96)", np.concatenate(narrower)),
        _projection_check("projection_cut", "arXiv, after eq. (96)", np.concatenate(moved)),
    ]


def _projection_check(check: str, source: str, wrong: np.ndarray) -> Check:
    return Check(
        check=check,
        source=source,
        trials=wrong.size,
        violations=int(wrong.sum()),
        value=float(wrong.mean()),
        value_name="share of cases that contradict it",
        note="false: the printed proof of Lemma 4 does not reach d > 2",
    )


def _project(
    random: np.random.Generator, trials: int, dimension: int
) -> tuple[np.ndarray, np.ndarray]:
    """Whether each pair's angle shrinks [pairs], and whether the best cut changes [trials]."""
    vectors = random.standard_normal((trials, VECTORS, dimension))
    vectors -= vectors.mean(axis=1, keepdims=True)
    before = cosine(vectors[:, :, None], vectors[:, None, :])
    cut = weakest_links(before)
    across = cut.first[:, :, None] & ~cut.first[:, None, :]
    closest = np.where(across, before, -np.inf).reshape(trials, -1).argmax(axis=1)
    pair = np.stack(np.divmod(closest, VECTORS), axis=1)
    plane = np.linalg.qr(np.take_along_axis(vectors, pair[:, :, None], axis=1).mT).Q
    flat = vectors @ plane
    after = cosine(flat[:, :, None], flat[:, None, :])
    counted = _pairs_without(pair)
    moved = np.abs(weakest_links(after).similarity - cut.similarity) > ROUNDING
    return (after > before + ROUNDING)[counted], moved


def _pairs_without(pair: np.ndarray) -> np.ndarray:
    """Pairs i < j of which neither is in `pair` [trials, 2], as eq. (96) asks; [trials, k, k]."""
    other = (np.arange(VECTORS) != pair[:, :1]) & (np.arange(VECTORS) != pair[:, 1:])
    return np.triu(other[:, :, None] & other[:, None, :], k=1)


def orthonormal_invariance(random: np.random.Generator, dimension: int, clients: int = 20) -> Check:
    """A common rotation of all updates leaves cosines, lengths and the mean as they were.

    Source: CFL eqs. (41), (42).
    """
    updates = random.standard_normal((clients, dimension))
    rotation = np.linalg.qr(random.standard_normal((dimension, dimension))).Q
    turned = updates @ rotation.T
    cosines = np.abs(cosine_similarity(turned) - cosine_similarity(updates))
    lengths = np.abs(np.linalg.norm(turned, axis=1) / np.linalg.norm(updates, axis=1) - 1)
    means = np.abs(turned.mean(axis=0) @ rotation - updates.mean(axis=0))
    errors = np.concatenate([cosines.ravel(), lengths, means])
    return Check(
        check="orthonormal_invariance",
        source="eqs. (41), (42)",
        trials=errors.size,
        violations=int((errors > ROUNDING).sum()),
        value=float(errors.max()),
        value_name=f"largest change of a cosine, length or mean, d = {dimension}",
        note="holds",
    )
