"""Handwritten digits that a dependency ships, in the place of MNIST."""

import numpy as np
from scipy.ndimage import affine_transform
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

_SIDE = 28
_TEST_ORIGINALS = 300
# MNIST puts a digit of 20 pixels into 28; the originals are 8 pixels high.
_ENLARGE = 20 / 8


def digits(
    rows: tuple[int, int], random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Digits enlarged from 8 x 8 to 28 x 28; originals of training and test rows are disjoint.

    Every original is used several times, each time scaled by up to 10 %, slanted by up to 0.15,
    turned by up to 12 degrees and shifted by up to 2 pixels, because 1,497 images are too few for
    20 clients.

    Returns:
        Training images uint8 [rows[0], 1, 28, 28], labels int64, and the same for the test.
    """
    source = load_digits()
    parts = train_test_split(
        source.images,
        source.target,
        test_size=_TEST_ORIGINALS,
        stratify=source.target,
        random_state=0,
    )
    train_x, test_x, train_y, test_y = parts
    return (
        *_repeat(train_x, train_y, rows[0], random),
        *_repeat(test_x, test_y, rows[1], random),
    )


def _repeat(
    originals: np.ndarray, labels: np.ndarray, rows: int, random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Cycle through the originals until there are `rows` varied images."""
    chosen = np.resize(np.arange(len(labels)), rows)
    images = [_vary(original, random) for original in originals[chosen]]
    return np.stack(images)[:, None], labels[chosen].astype(np.int64)


def _vary(original: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Enlarge one 8 x 8 image (values 0..16) to uint8 28 x 28 in one resampling."""
    turn, slant = np.deg2rad(random.uniform(-12, 12)), random.uniform(-0.15, 0.15)
    rotation = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    to_original = rotation @ [[1, 0], [slant, 1]] / (_ENLARGE * random.uniform(0.9, 1.1))
    centre = (_SIDE - 1) / 2 + random.uniform(-2, 2, 2)
    offset = (len(original) - 1) / 2 - to_original @ centre
    grey = affine_transform(original, to_original, offset, (_SIDE, _SIDE), order=3)
    return np.clip(np.rint(grey * (255 / 16)), 0, 255).astype(np.uint8)
