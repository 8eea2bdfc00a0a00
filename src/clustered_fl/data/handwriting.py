"""Characters of artificial writers, a substitute for EMNIST and FEMNIST.

A writer's hand is one of matplotlib's fonts with its own size, width, slant, pen and sway, and each
character varies slightly. As in the originals, some classes look alike ("0", "O" and "o").
"""

from functools import cache
from pathlib import Path

import numpy as np
from matplotlib import get_data_path
from matplotlib.ft2font import FT2Font, LoadFlags
from matplotlib.path import Path as Outline

from clustered_fl.data.dataset import Split
from clustered_fl.data.owners import divide
from clustered_fl.data.silhouettes import Pose, distance_field, draw

_SIDE = 28
# Roman and italic text fonts with even strokes; hairlines would vanish at 28 pixels.
_FONTS = (
    *("DejaVuSans", "DejaVuSans-Oblique", "DejaVuSansMono", "DejaVuSerif", "DejaVuSerif-Italic"),
    *("STIXGeneral", "STIXGeneralItalic", "cmss10", "cmtt10", "cmti10"),
)
CHARACTERS = tuple("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
# EMNIST "balanced" merges these lower-case letters with their capitals.
_MERGED = "cijklmopsuvwxyz"
LETTERS = tuple(character for character in CHARACTERS if character not in _MERGED)
WRITERS = 40


def letters(rows: tuple[int, int], random: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Light characters on black as in EMNIST, each in a different hand, equally many per class."""
    ways = [(each, each.lower() if each.lower() in _MERGED else each) for each in LETTERS]
    forms = np.array([[CHARACTERS.index(form) for form in each] for each in ways])
    parts = []
    for count in rows:
        labels = random.permutation(np.arange(count) % len(LETTERS))
        shown = forms[labels, random.integers(0, 2, count)]
        hands = _hands(count, random)
        parts += [_write(shown, hands, random.uniform(8, 10.5, count), random), labels]
    return tuple(parts)


def writers(rows: tuple[int, int], random: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Dark characters on white by 40 writers, with lower case smaller, as in FEMNIST.

    Writers have unequal numbers of images; `divide` uses about a tenth of them as test rows.
    """
    # At scale demo, writers have 60 to 200 images.
    count, weights = sum(rows), np.linspace(1, 200 / 60, WRITERS)
    ends = np.rint(np.cumsum(weights) / weights.sum() * count).astype(int)
    writer = random.permutation(np.repeat(np.arange(WRITERS), np.diff(ends, prepend=0)))
    labels = random.permutation(np.arange(count) % len(CHARACTERS))
    hands = {name: trait[writer] for name, trait in _hands(WRITERS, random).items()}
    height = _glyphs()[1][hands["font"], labels]
    images = 255 - _write(labels, hands, hands["size"] * height / 2, random)
    names = np.array([f"writer {number:02}" for number in range(WRITERS)])[writer]
    train, test = divide(Split(images, labels, CHARACTERS, names)).values()
    return train.rows, train.labels, test.rows, test.labels, train.owners, test.owners


def _hands(count: int, random: np.random.Generator) -> dict[str, np.ndarray]:
    """Properties of `count` hands, arrays [count]; "size" in pixels per em."""
    return {
        "font": random.integers(0, len(_FONTS), count),
        "size": random.uniform(13, 20, count),
        "width": random.uniform(0.75, 1.2, count),
        "slant": random.uniform(-0.15, 0.5, count),
        "pen": random.uniform(0.1, 0.8, count),
        "sway": random.uniform(0, 0.14, count),
    }


def _write(
    shown: np.ndarray, hands: dict[str, np.ndarray], radius: np.ndarray, random: np.random.Generator
) -> np.ndarray:
    """Draw one slightly varied character per image, in white: uint8 [N, 1, 28, 28]."""
    count = len(shown)
    pose = Pose(
        radius=radius * random.normal(1, 0.06, count),
        width=hands["width"] * random.normal(1, 0.08, count),
        slant=hands["slant"] + random.normal(0, 0.08, count),
        turn=random.normal(0, 0.08, count),
        shift=random.uniform(-1.5, 1.5, (count, 2)),
        weight=hands["pen"] + random.normal(0, 0.15, count),
        sway=hands["sway"] + random.normal(0, 0.02, count),
        phase=random.uniform(0, 2 * np.pi, count),
    )
    ink = draw(_glyphs()[0], hands["font"] * len(CHARACTERS) + shown, pose, _SIDE)
    return np.rint(ink * 255).astype(np.uint8)[:, None]


@cache
def _glyphs() -> tuple[np.ndarray, np.ndarray]:
    """Distance fields [fonts * 62, 64, 64] of centred glyphs, larger sides in em [fonts, 62]."""
    fields, sides = [], []
    for name in _FONTS:
        font = FT2Font(str(Path(get_data_path(), "fonts", "ttf", f"{name}.ttf")))
        # In units of 1/100 em: curves become polygons fine enough for any size here.
        font.set_size(100, 72)
        for character in CHARACTERS:
            font.load_char(ord(character), LoadFlags.NO_HINTING)
            contours = [points * [1, -1] for points in Outline(*font.get_path()).to_polygons()]
            points = np.concatenate(contours)
            low, high = points.min(axis=0), points.max(axis=0)
            side = (high - low).max()
            centred = [(contour - (low + high) / 2) * (2 / side) for contour in contours]
            fields.append(distance_field(centred))
            sides.append(side / 100)
    return np.stack(fields), np.array(sides).reshape(len(_FONTS), -1)
