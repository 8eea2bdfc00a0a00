"""Characters in the hands of made-up writers, in the place of EMNIST and FEMNIST.

A hand is one of the fonts that matplotlib ships, with a size, width, slant, pen and sway of its
own; within a hand every character varies a little. As in the originals, several classes look alike
("0", "O" and "o"), so nobody is right everywhere.
"""

from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib import get_data_path
from matplotlib.ft2font import FT2Font, LoadFlags
from matplotlib.path import Path as Outline

from clustered_fl.data.dataset import Split
from clustered_fl.data.owners import divide
from clustered_fl.data.silhouettes import Pose, distance_field, draw

_SIDE = 28
# Text faces, roman and italic, with even strokes: hairlines would vanish at 28 pixels.
_FONTS = (
    *("DejaVuSans", "DejaVuSans-Oblique", "DejaVuSansMono", "DejaVuSerif", "DejaVuSerif-Italic"),
    *("STIXGeneral", "STIXGeneralItalic", "cmss10", "cmtt10", "cmti10"),
)
CHARACTERS = tuple("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
# EMNIST "balanced" counts these lower-case letters as their capitals.
_MERGED = "cijklmopsuvwxyz"
LETTERS = tuple(character for character in CHARACTERS if character not in _MERGED)
WRITERS = 40
# The most productive writer has so many times as many images as the least productive one.
_UNEQUAL = 200 / 60


class _Hands(NamedTuple):
    """Traits of writers or of single images, arrays of equal length."""

    font: np.ndarray
    size: np.ndarray
    width: np.ndarray
    slant: np.ndarray
    pen: np.ndarray
    sway: np.ndarray


def letters(
    rows: tuple[int, int], random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Light characters on black, each in another hand, large and centred as in EMNIST.

    Returns:
        Training images uint8 [rows[0], 1, 28, 28], labels int64 (positions in `LETTERS`, equally
        many of each in random order), and the same for the test.
    """
    forms = np.array([_forms(letter) for letter in LETTERS])
    parts = []
    for count in rows:
        labels = random.permutation(np.arange(count) % len(LETTERS))
        shown = forms[labels, random.integers(0, 2, count)]
        hands = _hands(count, random)
        ink = _write(shown, hands, random.uniform(8, 10.5, count), random)
        parts += [_grey(ink), labels]
    return tuple(parts)


def _forms(letter: str) -> tuple[int, int]:
    """Positions in `CHARACTERS` of the two ways to write a class of EMNIST, which may be equal."""
    small = letter.lower() if letter.lower() in _MERGED else letter
    return CHARACTERS.index(letter), CHARACTERS.index(small)


def writers(rows: tuple[int, int], random: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Dark characters on white by 40 writers, small ones smaller, as in FEMNIST.

    Writers have unequal numbers of images, sum(rows) together; `divide` decides which of them are
    test rows, about a tenth.

    Returns:
        Training images uint8 [n, 1, 28, 28], labels int64 (positions in `CHARACTERS`), the same for
        the test, then the writers' names str [n] of training and test rows.
    """
    count = sum(rows)
    writer = random.permutation(np.repeat(np.arange(WRITERS), _output(count)))
    labels = random.permutation(np.arange(count) % len(CHARACTERS))
    hands = _Hands(*(trait[writer] for trait in _hands(WRITERS, random)))
    height = _glyphs()[1][hands.font, labels]
    ink = _write(labels, hands, hands.size * height / 2, random)
    names = np.array([f"writer {number:02}" for number in range(WRITERS)])[writer]
    train, test = divide(Split(255 - _grey(ink), labels, CHARACTERS, names)).values()
    return train.rows, train.labels, test.rows, test.labels, train.owners, test.owners


def _output(count: int) -> np.ndarray:
    """Images of each writer, [writers], summing to `count`."""
    weights = np.linspace(1, _UNEQUAL, WRITERS)
    ends = np.rint(np.cumsum(weights) / weights.sum() * count).astype(int)
    return np.diff(ends, prepend=0)


def _hands(count: int, random: np.random.Generator) -> _Hands:
    """Draw hands; sizes are pixels per em."""
    ranges = {
        "size": (13, 20),
        "width": (0.75, 1.2),
        "slant": (-0.15, 0.5),
        "pen": (0.1, 0.8),
        "sway": (0, 0.14),
    }
    fonts = random.integers(0, len(_FONTS), count)
    return _Hands(fonts, **{name: random.uniform(*span, count) for name, span in ranges.items()})


def _write(
    shown: np.ndarray, hands: _Hands, radius: np.ndarray, random: np.random.Generator
) -> np.ndarray:
    """Write one character per image, each a little different, [N, 28, 28] in 0..1."""
    count = len(shown)
    pose = Pose(
        radius=radius * random.normal(1, 0.06, count),
        width=hands.width * random.normal(1, 0.08, count),
        slant=hands.slant + random.normal(0, 0.08, count),
        turn=random.normal(0, 0.08, count),
        shift=random.uniform(-1.5, 1.5, (count, 2)),
        weight=hands.pen + random.normal(0, 0.15, count),
        sway=hands.sway + random.normal(0, 0.02, count),
        phase=random.uniform(0, 2 * np.pi, count),
    )
    fields, _ = _glyphs()
    return draw(fields, hands.font * len(CHARACTERS) + shown, pose, _SIDE)


def _grey(ink: np.ndarray) -> np.ndarray:
    return np.rint(ink * 255).astype(np.uint8)[:, None]


@cache
def _glyphs() -> tuple[np.ndarray, np.ndarray]:
    """Distance fields [fonts * 62, 64, 64], and larger sides in em [fonts, 62]."""
    fields, sides = [], []
    for name in _FONTS:
        font = FT2Font(str(Path(get_data_path(), "fonts", "ttf", f"{name}.ttf")))
        # In units of 1/100 em: curves become polygons fine enough for any size here.
        font.set_size(100, 72)
        for character in CHARACTERS:
            contours, side = _centred(font, character)
            fields.append(distance_field(contours))
            sides.append(side / 100)
    return np.stack(fields), np.array(sides).reshape(len(_FONTS), -1)


def _centred(font: FT2Font, character: str) -> tuple[list[np.ndarray], float]:
    """Contours of a glyph, centred and scaled to span two units, and its larger side before."""
    font.load_char(ord(character), LoadFlags.NO_HINTING)
    contours = [points * [1, -1] for points in Outline(*font.get_path()).to_polygons()]
    points = np.concatenate(contours)
    low, high = points.min(axis=0), points.max(axis=0)
    side = (high - low).max()
    return [(contour - (low + high) / 2) * (2 / side) for contour in contours], float(side)
