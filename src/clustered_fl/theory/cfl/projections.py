"""Effects of linear maps on angles: eq. (96) of the proof of Lemma 4, and eqs. (41), (42)."""

import numpy as np

from clustered_fl.methods.groups import cosine_similarity
from clustered_fl.theory.cfl.spanning import weakest_links
from clustered_fl.theory.search import ROUNDING, Check, counted, similarities

DIMENSIONS = (3, 5, 20)
VECTORS = 6


def projection(random: np.random.Generator, trials: int) -> list[Check]:
    """Project vectors that sum to zero onto the plane of the closest pair across the best cut.

    The printed proof of Lemma 4 for d > 2 says that all other angles can only grow (eq. 96) and
    that the best cut is therefore unchanged, with the same angle.
    """
    found = zip(*(_project(random, trials, dimension) for dimension in DIMENSIONS), strict=True)
    narrower, moved = map(np.concatenate, found)
    name = "share of cases that contradict it"
    note = "false: the printed proof of Lemma 4 does not cover d > 2"
    cut = "arXiv, after eq. (96)"
    return [
        counted("projection_angles", "arXiv eq. (96)", narrower, narrower.mean(), name, note),
        counted("projection_cut", cut, moved, moved.mean(), name, note),
    ]


def _project(
    random: np.random.Generator, trials: int, dimension: int
) -> tuple[np.ndarray, np.ndarray]:
    """Whether the angle of each pair that eq. (96) is about shrinks, and whether each cut changes.

    These are the pairs i < j without a client of the pair that spans the plane.
    """
    vectors = random.standard_normal((trials, VECTORS, dimension))
    vectors -= vectors.mean(axis=1, keepdims=True)
    before = similarities(vectors)
    cut = weakest_links(before)
    across = cut.first[:, :, None] & ~cut.first[:, None, :]
    closest = np.where(across, before, -np.inf).reshape(trials, -1).argmax(axis=1)
    pair = np.stack(np.divmod(closest, VECTORS), axis=1)
    plane = np.linalg.qr(np.take_along_axis(vectors, pair[:, :, None], axis=1).mT).Q
    after = similarities(vectors @ plane)
    other = (pair[:, :, None] != np.arange(VECTORS)).all(axis=1)
    others = np.triu(other[:, :, None] & other[:, None, :], k=1)
    moved = np.abs(weakest_links(after).similarity - cut.similarity) > ROUNDING
    return (after > before + ROUNDING)[others], moved


def orthonormal_invariance(random: np.random.Generator, dimension: int, clients: int = 20) -> Check:
    """A common rotation of all updates keeps cosines, lengths and mean (CFL eqs. 41, 42)."""
    updates = random.standard_normal((clients, dimension))
    rotation = np.linalg.qr(random.standard_normal((dimension, dimension))).Q
    turned = updates @ rotation.T
    cosines = np.abs(cosine_similarity(turned) - cosine_similarity(updates))
    lengths = np.abs(np.linalg.norm(turned, axis=1) / np.linalg.norm(updates, axis=1) - 1)
    means = np.abs(turned.mean(axis=0) @ rotation - updates.mean(axis=0))
    errors = np.concatenate([cosines.ravel(), lengths, means])
    name, source = "orthonormal_invariance", "eqs. (41), (42)"
    largest = f"largest change of a cosine, length or mean, d = {dimension}"
    return counted(name, source, errors > ROUNDING, errors.max(), largest, "holds")
