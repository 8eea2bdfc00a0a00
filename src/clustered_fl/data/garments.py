"""Silhouettes of clothes, a substitute for Fashion-MNIST.

As in the original, four kinds of tops look alike, and so do three kinds of shoes.
"""

import numpy as np

from clustered_fl.data.silhouettes import Pose, distance_field, draw

_SIDE = 28
# Contours in hundredths of a unit (right, down). A symmetric garment has only its right half, from
# neck to hem, without negative x.
_OUTLINES = {
    "t-shirt": "0,-78 22,-92 50,-86 96,-44 78,-18 54,-40 52,92 0,92",
    "trousers": "0,-98 42,-98 54,98 20,98 4,-34 0,-34",
    "pullover": "0,-84 24,-94 52,-86 84,-30 96,78 72,82 58,-14 56,90 0,90",
    "dress": "0,-66 14,-70 22,-98 34,-98 34,-58 24,-14 62,98 0,98",
    "coat": "9,-70 24,-98 54,-88 84,-26 92,60 70,64 60,-10 66,98 9,98",
    "sandal": "-98,30 -60,42 40,36 92,4 98,52 70,52 64,40 30,54 -98,54|"
    "-70,34 -30,-12 -14,-8 -46,40|0,36 44,-24 84,-14 88,4 50,-8 24,36",
    "shirt": "0,-62 20,-94 50,-88 92,24 70,36 54,-22 50,96 0,96",
    "sneaker": "-98,48 -98,16 -64,2 -20,-34 8,-22 60,-26 92,-40 98,48|-90,26 -90,32 92,32 92,26",
    "bag": "-86,-20 86,-20 96,80 -96,80|-50,-20 -40,-74 0,-92 40,-74 50,-20 36,-20 28,-62 "
    "0,-76 -28,-62 -36,-20",
    "ankle boot": "-98,82 -98,52 -40,24 -12,-4 -14,-88 70,-92 74,20 90,82 52,82 44,66 10,74",
}
GARMENTS = tuple(_OUTLINES)


def garments(rows: tuple[int, int], random: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Light garments on black, 28 x 28, equally many of every class (see `builtin.StandIn`)."""
    fields = np.stack([distance_field(_contours(outline)) for outline in _OUTLINES.values()])
    parts = []
    for count in rows:
        labels = random.permutation(np.arange(count) % len(GARMENTS))
        poses = Pose(
            radius=random.uniform(9.5, 13, count),
            width=random.uniform(0.7, 1.25, count),
            slant=random.normal(0, 0.1, count),
            turn=random.normal(0, 0.1, count),
            shift=random.uniform(-2, 2, (count, 2)),
            weight=random.uniform(-0.6, 0.8, count),
            sway=random.uniform(0, 0.12, count),
            phase=random.uniform(0, 2 * np.pi, count),
        )
        cloth = draw(fields, labels, poses, _SIDE) * _fabric(count, random)
        parts += [np.rint(np.clip(cloth, 0, 1) * 255).astype(np.uint8)[:, None], labels]
    return tuple(parts)


def _contours(outline: str) -> list[np.ndarray]:
    """Closed polygons [points, 2] in units."""
    points = [[point.split(",") for point in contour.split()] for contour in outline.split("|")]
    contours = [np.array(each, float) / 100 for each in points]
    is_half = all((contour[:, 0] >= 0).all() for contour in contours)
    return [np.concatenate([c, c[::-1] * [-1, 1]]) for c in contours] if is_half else contours


def _fabric(count: int, random: np.random.Generator) -> np.ndarray:
    """Brightness [N, 28, 28] around 0.2..1: stripes of any direction, shading and noise."""
    axis = np.arange(_SIDE) - (_SIDE - 1) / 2
    waves, start = random.uniform(0.5, 2, (count, 1, 1)), random.uniform(0, 6.3, (count, 1, 1))
    angle = random.uniform(0, np.pi, (count, 1, 1))
    along = np.cos(angle) * axis + np.sin(angle) * axis[:, None]
    stripes = random.uniform(0, 0.25, (count, 1, 1)) * np.sin(waves * along + start)
    shading = random.normal(0, 0.012, (2, count, 1, 1))
    light = random.uniform(0.35, 0.9, (count, 1, 1)) + shading[0] * axis
    light = light + shading[1] * axis[:, None] + random.normal(0, 0.06, (count, _SIDE, _SIDE))
    return np.clip(light + stripes, 0.1, 1)
