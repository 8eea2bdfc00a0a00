"""Drawings of coloured, textured shapes in the place of CIFAR-10 and, others, of CIFAR-100.

A class is an outline with a texture ("striped disc"). As with aeroplanes in the sky, colour hints
at the class: a small network improves from its first epoch and still needs the outline in the end.
"""

from collections.abc import Callable
from itertools import product
from typing import NamedTuple

import numpy as np

_SIDE = 32


class _Family(NamedTuple):
    """Classes of drawings: every texture on every outline.

    An outline says of coordinates (u, v) in the frame of the shape, -1..1, whether it covers them;
    a texture says, given w waves per unit and two phases p, where the first of two colours is.
    """

    outlines: dict[str, Callable[..., np.ndarray]]
    textures: dict[str, Callable[..., np.ndarray]]

    @property
    def classes(self) -> tuple[str, ...]:
        return tuple(f"{pattern} {form}" for pattern, form in product(self.textures, self.outlines))


_PLAIN = _Family(
    outlines={
        "disc": lambda u, v: np.hypot(u, v) < 1,
        "square": lambda u, v: np.maximum(abs(u), abs(v)) < 0.88,
        "triangle": lambda u, v: np.maximum(0.866 * abs(u) - 0.5 * v, v) < 0.55,
        "cross": lambda u, v: (
            (np.minimum(abs(u), abs(v)) < 0.33) & (np.maximum(abs(u), abs(v)) < 1)
        ),
        "ring": lambda u, v: abs(np.hypot(u, v) - 0.78) < 0.3,
    },
    textures={
        "striped": lambda u, v, w, p: np.sin(w * u + p[0]) > 0,
        "checked": lambda u, v, w, p: np.sin(w * u + p[0]) * np.sin(w * v + p[1]) > 0,
    },
)
_FINE = _Family(
    outlines={
        "star": lambda u, v: np.hypot(u, v) < 0.66 + 0.36 * np.cos(5 * np.arctan2(u, -v)),
        "crescent": lambda u, v: (np.hypot(u, v) < 1) & (np.hypot(u - 0.5, v) > 0.78),
        "diamond": lambda u, v: abs(u) + abs(v) < 1.1,
        "ellipse": lambda u, v: np.hypot(u, 1.9 * v) < 1.05,
        "arrow": lambda u, v: np.where(
            v < 0, 0.9 * abs(u) - v < 0.95, (abs(u) < 0.35) & (v < 0.95)
        ),
    },
    textures={
        "dotted": lambda u, v, w, p: np.sin(w * u + p[0]) * np.sin(w * v + p[1]) > 0.35,
        "wavy": lambda u, v, w, p: np.sin(w * v + 1.5 * np.sin(w * u + p[0]) + p[1]) > 0,
        "ringed": lambda u, v, w, p: np.sin(1.5 * w * np.hypot(u, v) + p[0]) > 0,
        "halved": lambda u, v, w, p: np.cos(p[0]) * u + np.sin(p[0]) * v > 0,
    },
)
CLASSES, FINE_CLASSES = _PLAIN.classes, _FINE.classes


def shapes(
    rows: tuple[int, int], random: np.random.Generator, family: _Family = _PLAIN
) -> tuple[np.ndarray, ...]:
    """Colour images of 32 x 32 pixels, equally many of every class (see `builtin.StandIn`)."""
    parts = []
    for count in rows:
        labels = random.permutation(np.arange(count) % len(family.classes))
        parts += [_draw(labels, family, random), labels]
    return tuple(parts)


def fine_shapes(rows: tuple[int, int], random: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Like `shapes`, with other outlines and textures: labels are positions in `FINE_CLASSES`."""
    return shapes(rows, random, _FINE)


def _draw(labels: np.ndarray, family: _Family, random: np.random.Generator) -> np.ndarray:
    """One image per label, uint8 [N, 3, 32, 32]."""
    count = len(labels)
    u, v = _coordinates(count, random)
    texture, outline = np.divmod(labels[:, None, None, None], len(family.outlines))
    first, second, ground = _colours(labels / len(family.classes), random)
    waves = random.uniform(4.0, 6.0, (count, 1, 1, 1)).astype(np.float32)
    phases = random.uniform(0, 2 * np.pi, (2, count, 1, 1, 1)).astype(np.float32)
    textured = [pattern(u, v, waves, phases) for pattern in family.textures.values()]
    ink = np.where(np.choose(texture, textured), first, second)
    covered = np.choose(outline, [covers(u, v) for covers in family.outlines.values()])
    # Clouds in the background are coarse noise, enlarged.
    clouds = random.normal(0, 0.1, (count, 3, 4, 4)).astype(np.float32)
    clouds = clouds.repeat(_SIDE // 4, 2).repeat(_SIDE // 4, 3)
    image = np.where(covered, ink, ground + clouds)
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


def _colours(tone: np.ndarray, random: np.random.Generator) -> list[np.ndarray]:
    """Two ink colours and a ground colour per image, each [N, 3, 1, 1] around 0..1.

    The tone [N] in 0..1 of an image's class is its place on the colour circle.
    """
    angle = 2 * np.pi * (tone[:, None] + np.arange(3) / 3)
    # The mean colour of a class lies 0.2 from grey.
    hue = 0.2 * np.cos(angle)[:, :, None, None]
    middle = 0.5 + hue + random.uniform(-0.25, 0.25, hue.shape)
    # The two inks differ in lightness, or the texture could not be seen.
    contrast = random.uniform(0.15, 0.3, (len(tone), 1, 1, 1))
    return [middle + contrast, middle - contrast, random.uniform(0.2, 0.8, hue.shape)]
