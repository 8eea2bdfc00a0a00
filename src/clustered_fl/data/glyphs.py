"""Handwritten digits from scikit-learn, a substitute for MNIST."""

import numpy as np
from scipy.ndimage import affine_transform
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

_SIDE = 28
# A digit of MNIST fills 20 of 28 pixels; the originals are 8 pixels high.
_ENLARGE = 20 / 8


def digits(rows: tuple[int, int], random: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Digits, 28 x 28; no original is in both training and test rows (see `builtin.StandIn`).

    Every original is used several times with variations, as 1,497 are too few for 20 clients.
    """
    images, labels = load_digits(return_X_y=True)
    drawn = {"test_size": 300, "stratify": labels, "random_state": 0}
    train_x, test_x, train_y, test_y = train_test_split(images.reshape(-1, 8, 8), labels, **drawn)
    parts = []
    for originals, numbers, count in ((train_x, train_y, rows[0]), (test_x, test_y, rows[1])):
        chosen = np.resize(np.arange(len(numbers)), count)
        varied = [_vary(original, random) for original in originals[chosen]]
        parts += [np.stack(varied)[:, None], numbers[chosen].astype(np.int64)]
    return tuple(parts)


def _vary(original: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Enlarge one 8 x 8 image (values 0..16) to uint8 28 x 28 in one resampling."""
    turn, slant = np.deg2rad(random.uniform(-12, 12)), random.uniform(-0.15, 0.15)
    rotation = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    to_original = rotation @ [[1, 0], [slant, 1]] / (_ENLARGE * random.uniform(0.9, 1.1))
    centre = (_SIDE - 1) / 2 + random.uniform(-2, 2, 2)
    offset = (len(original) - 1) / 2 - to_original @ centre
    grey = affine_transform(original, to_original, offset, (_SIDE, _SIDE), order=3)
    return np.clip(np.rint(grey * (255 / 16)), 0, 255).astype(np.uint8)
