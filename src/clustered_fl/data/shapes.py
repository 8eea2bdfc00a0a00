"""Drawings of coloured, textured shapes in the place of CIFAR-10.

A class is an outline with a texture ("striped disc"). Place, size, angle, colours and background
vary within every class. As with aeroplanes in the sky, colour hints at the class without telling
it: a small network improves from its first epoch and still needs the outline in the end.
"""

import numpy as np

_SIDE = 32
_OUTLINES = ("disc", "square", "triangle", "cross", "ring")
_TEXTURES = ("striped", "checked")
# How far the mean colour of a class lies from grey.
_HINT = 0.2
CLASSES = tuple(f"{texture} {outline}" for texture in _TEXTURES for outline in _OUTLINES)


def shapes(
    rows: tuple[int, int], random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Draw training and test images, equally many of every class in random order.

    Returns:
        Training images uint8 [rows[0], 3, 32, 32], labels int64, and the same for the test.
    """
    parts = []
    for count in rows:
        labels = random.permutation(np.arange(count) % len(CLASSES))
        parts += [_draw(labels, random), labels]
    return tuple(parts)


def _draw(labels: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """One image per label, uint8 [N, 3, 32, 32]."""
    u, v = _coordinates(len(labels), random)
    outline, texture = labels % len(_OUTLINES), labels // len(_OUTLINES)
    first, second, ground = _colours(labels, random)
    ink = np.where(_texture(texture, u, v, random), first, second)
    image = np.where(_outline(outline, u, v), ink, ground + _clouds(len(labels), random))
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


def _outline(kind: np.ndarray, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Which pixels the outline `_OUTLINES[kind]` covers, bool [N, 1, 32, 32]."""
    distance, across, along = np.hypot(u, v), np.abs(u), np.abs(v)
    covers = [
        distance < 1,
        np.maximum(across, along) < 0.88,
        np.maximum(0.866 * across - 0.5 * v, v) < 0.55,
        (np.minimum(across, along) < 0.33) & (np.maximum(across, along) < 1),
        np.abs(distance - 0.78) < 0.3,
    ]
    return np.choose(kind[:, None, None, None], covers)


def _texture(
    kind: np.ndarray, u: np.ndarray, v: np.ndarray, random: np.random.Generator
) -> np.ndarray:
    """Which pixels take the first of two colours, bool [N, 1, 32, 32]."""
    count = (len(kind), 1, 1, 1)
    waves = random.uniform(4.0, 6.0, count).astype(np.float32)
    start = random.uniform(0, 2 * np.pi, (2, *count)).astype(np.float32)
    stripes = np.sin(waves * u + start[0])
    checks = stripes * np.sin(waves * v + start[1])
    return np.choose(kind[:, None, None, None], [stripes > 0, checks > 0])


def _colours(labels: np.ndarray, random: np.random.Generator) -> list[np.ndarray]:
    """Two ink colours and a ground colour per image, each [N, 3, 1, 1] around 0..1."""
    angle = 2 * np.pi * (labels[:, None] / len(CLASSES) + np.arange(3) / 3)
    hue = _HINT * np.cos(angle)[:, :, None, None]
    middle = 0.5 + hue + random.uniform(-0.25, 0.25, hue.shape)
    # The two inks differ in lightness, or the texture could not be seen.
    contrast = random.uniform(0.15, 0.3, (len(labels), 1, 1, 1))
    return [middle + contrast, middle - contrast, random.uniform(0.2, 0.8, hue.shape)]


def _clouds(count: int, random: np.random.Generator) -> np.ndarray:
    """Smooth background variation [N, 3, 32, 32]: coarse noise, enlarged."""
    coarse = random.normal(0, 0.1, (count, 3, 4, 4)).astype(np.float32)
    return coarse.repeat(_SIDE // 4, 2).repeat(_SIDE // 4, 3)
