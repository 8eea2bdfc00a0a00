"""Small drawings of flat figures, given by their outlines, in many poses at once.

A figure is stored as its signed distance field: a threshold makes strokes thicker or thinner, and
sampling the field draws the figure in any pose with smooth edges.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.ndimage import distance_transform_edt, gaussian_filter, map_coordinates

_SAMPLES = 64
# Fields extend beyond figures, which span -1..1, to leave room for thicker strokes.
_REACH = 1.5
_STEP = 2 * _REACH / _SAMPLES


class Pose(NamedTuple):
    """Poses of N figures in their images, arrays [N] unless stated otherwise."""

    radius: np.ndarray  # pixels per unit; a figure spans two units
    width: np.ndarray  # horizontal stretch
    slant: np.ndarray  # units to the right per unit upwards
    turn: np.ndarray  # clockwise, in radians
    shift: np.ndarray  # pixels right and down from the middle of the image, [N, 2]
    weight: np.ndarray  # pixels added at every edge; negative ones make strokes thinner
    sway: np.ndarray  # amplitude of a wave that bends the figure sideways, in units
    phase: np.ndarray  # where that wave starts, in radians


def distance_field(contours: Sequence[np.ndarray]) -> np.ndarray:
    """Signed distance to the edge of a figure, positive inside, float32 [64, 64].

    Contours are closed polygons [points, 2] in units (right, down); the inside of an even number
    of them is a hole.
    """
    inside = _inside(contours)
    distance = distance_transform_edt(inside) - distance_transform_edt(~inside)
    # The distance is to the next sample on the other side; the edge lies half way.
    distance -= 0.5 * np.sign(distance)
    # Otherwise sampling would leave steps along slanted edges in the drawings.
    return gaussian_filter((distance * _STEP).astype(np.float32), sigma=0.8)


def _inside(contours: Sequence[np.ndarray]) -> np.ndarray:
    """Even-odd rule at every sample, bool [64, 64]: edges crossed on the way to the left."""
    axis = (np.arange(_SAMPLES) + 0.5) * _STEP - _REACH
    starts = np.concatenate(contours)
    ends = np.concatenate([np.roll(contour, -1, axis=0) for contour in contours])
    (x, y), (end_x, end_y) = starts.T[..., None], ends.T[..., None]
    crosses = (y > axis) != (end_y > axis)
    slope = (end_x - x) / np.where(end_y == y, 1, end_y - y)
    left = crosses[:, :, None] & ((x + slope * (axis - y))[:, :, None] < axis)
    return left.sum(axis=0) % 2 == 1


def draw(fields: np.ndarray, kinds: np.ndarray, pose: Pose, side: int) -> np.ndarray:
    """Fraction of each pixel covered by the figure, float32 [N, side, side] in 0..1.

    Args:
        fields: distance fields [figures, 64, 64].
        kinds: which figure each image shows, [N].
    """
    each = Pose(*(np.asarray(trait, np.float32)[..., None, None] for trait in pose))
    axis = np.arange(side, dtype=np.float32) - (side - 1) / 2
    right, down = axis - each.shift[:, 0], axis[:, None] - each.shift[:, 1]
    v = (np.cos(each.turn) * down - np.sin(each.turn) * right) / each.radius
    u = (np.cos(each.turn) * right + np.sin(each.turn) * down) / each.radius
    u = (u + each.slant * v + each.sway * np.sin(3 * v + each.phase)) / each.width
    number = np.broadcast_to(kinds[:, None, None], u.shape)
    places = np.stack([number, *((along + _REACH) / _STEP - 0.5 for along in (v, u))])
    distance = map_coordinates(fields, places, order=1, mode="nearest")
    return np.clip(distance * each.radius + each.weight + 0.5, 0, 1)
