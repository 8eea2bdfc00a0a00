"""Drawings of coloured, textured shapes in the place of CIFAR-10 and, others, of CIFAR-100.

A class is an outline with a texture ("striped disc"). Place, size, angle, colours and background
vary within every class. As with aeroplanes in the sky, colour hints at the class without telling
it: a small network improves from its first epoch and still needs the outline in the end.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

_SIDE = 32
# How far the mean colour of a class lies from grey.
_HINT = 0.2


class _Family(NamedTuple):
    """Classes of drawings: every texture on every outline.

    An outline says of coordinates (u, v) in the frame of the shape, -1..1, whether it covers them;
    a texture says, given waves per unit and two phases, where the first of two colours is.
    """

    outlines: dict[str, Callable[..., np.ndarray]]
    textures: dict[str, Callable[..., np.ndarray]]

    @property
    def classes(self) -> tuple[str, ...]:
        return tuple(
            f"{texture} {outline}" for texture in self.textures for outline in self.outlines
        )


_PLAIN = _Family(
    outlines={
        "disc": lambda u, v: np.hypot(u, v) < 1,
        "square": lambda u, v: np.maximum(np.abs(u), np.abs(v)) < 0.88,
        "triangle": lambda u, v: np.maximum(0.866 * np.abs(u) - 0.5 * v, v) < 0.55,
        "cross": lambda u, v: (
            (np.minimum(np.abs(u), np.abs(v)) < 0.33) & (np.maximum(np.abs(u), np.abs(v)) < 1)
        ),
        "ring": lambda u, v: np.abs(np.hypot(u, v) - 0.78) < 0.3,
    },
    textures={
        "striped": lambda u, v, waves, start: np.sin(waves * u + start[0]) > 0,
        "checked": lambda u, v, waves, start: (
            np.sin(waves * u + start[0]) * np.sin(waves * v + start[1]) > 0
        ),
    },
)
_FINE = _Family(
    outlines={
        "star": lambda u, v: np.hypot(u, v) < 0.66 + 0.36 * np.cos(5 * np.arctan2(u, -v)),
        "crescent": lambda u, v: (np.hypot(u, v) < 1) & (np.hypot(u - 0.5, v) > 0.78),
        "diamond": lambda u, v: np.abs(u) + np.abs(v) < 1.1,
        "ellipse": lambda u, v: np.hypot(u, 1.9 * v) < 1.05,
        "arrow": lambda u, v: np.where(
            v < 0, 0.9 * np.abs(u) - v < 0.95, (np.abs(u) < 0.35) & (v < 0.95)
        ),
    },
    textures={
        "dotted": lambda u, v, waves, start: (
            np.sin(waves * u + start[0]) * np.sin(waves * v + start[1]) > 0.35
        ),
        "wavy": lambda u, v, waves, start: (
            np.sin(waves * v + 1.5 * np.sin(waves * u + start[0]) + start[1]) > 0
        ),
        "ringed": lambda u, v, waves, start: np.sin(1.5 * waves * np.hypot(u, v) + start[0]) > 0,
        "halved": lambda u, v, waves, start: np.cos(start[0]) * u + np.sin(start[0]) * v > 0,
    },
)
CLASSES, FINE_CLASSES = _PLAIN.classes, _FINE.classes


def shapes(
    rows: tuple[int, int], random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Draw training and test images, equally many of every class in random order.

    Returns:
        Training images uint8 [rows[0], 3, 32, 32], labels int64 (positions in `CLASSES`), and the
        same for the test.
    """
    return _both(_PLAIN, rows, random)


def fine_shapes(
    rows: tuple[int, int], random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Like `shapes`, with other outlines and textures: labels are positions in `FINE_CLASSES`."""
    return _both(_FINE, rows, random)


def _both(
    family: _Family, rows: tuple[int, int], random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    parts = []
    for count in rows:
        labels = random.permutation(np.arange(count) % len(family.classes))
        parts += [_draw(labels, family, random), labels]
    return tuple(parts)


def _draw(labels: np.ndarray, family: _Family, random: np.random.Generator) -> np.ndarray:
    """One image per label, uint8 [N, 3, 32, 32]."""
    u, v = _coordinates(len(labels), random)
    texture, outline = np.divmod(labels[:, None, None, None], len(family.outlines))
    first, second, ground = _colours(labels / len(family.classes), random)
    waves, start = _waves(len(labels), random)
    textured = [pattern(u, v, waves, start) for pattern in family.textures.values()]
    ink = np.where(np.choose(texture, textured), first, second)
    covered = np.choose(outline, [covers(u, v) for covers in family.outlines.values()])
    image = np.where(covered, ink, ground + _clouds(len(labels), random))
    image = image + random.normal(0, 0.05, image.shape)
    return np.clip(np.rint(image * 255), 0, 255).astype(np.uint8)


def _coordinates(count: int, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Pixel coordinates [N, 1, 32, 32] in the frame of each shape, which spans about -1..1."""
    axis = np.arange(_SIDE, dtype=np.float32) - (_SIDE - 1) / 2
    shift = random.uniform(-4, 4, (2, count, 1, 1, 1)).astype(np.float32)
    angle = random.uniform(-0.35, 0.35, (count, 1, 1, 1)).astype(np.float32)
    radius = random.uniform(9, 13, (count, 1, 1, 1)).astype(np.float32)
    right, down = axis - shift[0], axis[:, None] - shift[1]
    u = (np.cos(angle) * right + np.sin(angle) * down) / radius
    v = (np.cos(angle) * down - np.sin(angle) * right) / radius
    return u, v


def _waves(count: int, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Waves per unit [N, 1, 1, 1] of each texture and two phases [2, N, 1, 1, 1]."""
    shape = (count, 1, 1, 1)
    waves = random.uniform(4.0, 6.0, shape).astype(np.float32)
    return waves, random.uniform(0, 2 * np.pi, (2, *shape)).astype(np.float32)


def _colours(tone: np.ndarray, random: np.random.Generator) -> list[np.ndarray]:
    """Two ink colours and a ground colour per image, each [N, 3, 1, 1] around 0..1.

    The tone [N] in 0..1 of an image's class is its place on the colour circle.
    """
    angle = 2 * np.pi * (tone[:, None] + np.arange(3) / 3)
    hue = _HINT * np.cos(angle)[:, :, None, None]
    middle = 0.5 + hue + random.uniform(-0.25, 0.25, hue.shape)
    # The two inks differ in lightness, or the texture could not be seen.
    contrast = random.uniform(0.15, 0.3, (len(tone), 1, 1, 1))
    return [middle + contrast, middle - contrast, random.uniform(0.2, 0.8, hue.shape)]


def _clouds(count: int, random: np.random.Generator) -> np.ndarray:
    """Smooth background variation [N, 3, 32, 32]: coarse noise, enlarged."""
    coarse = random.normal(0, 0.1, (count, 3, 4, 4)).astype(np.float32)
    return coarse.repeat(_SIDE // 4, 2).repeat(_SIDE // 4, 3)
