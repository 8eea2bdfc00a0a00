"""Drawing figures from their outlines: in the right place, form and strength, and smoothly."""

import numpy as np
import pytest

from clustered_fl.data.silhouettes import Pose, distance_field, draw

SQUARE = np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])
STILL = {"radius": 8, "width": 1, "slant": 0, "turn": 0, "weight": 0, "sway": 0, "phase": 0}


def drawn(*contours: np.ndarray, shift=(0, 0), **change) -> np.ndarray:
    """One image of one figure, [32, 32]."""
    traits = {name: np.array([value], float) for name, value in (STILL | change).items()}
    pose = Pose(shift=np.array([shift], float), **traits)
    return draw(distance_field(contours)[None], np.array([0]), pose, 32)[0]


def middle(image: np.ndarray) -> tuple[float, float]:
    """Centre of mass, right and down from the middle of the image."""
    axis = np.arange(32) - 15.5
    mass = image.sum()
    return float((image.sum(axis=0) * axis).sum() / mass), float(
        (image.sum(axis=1) * axis).sum() / mass
    )


def test_distance_is_positive_inside_and_in_units():
    field = distance_field([SQUARE])
    assert field.shape == (64, 64)
    assert field[32, 32] == pytest.approx(1, abs=0.08)
    assert field[32, 0] == pytest.approx(-0.5, abs=0.05)
    assert abs(field[32, 10:12]).max() < 0.06


def test_what_two_contours_surround_is_a_hole():
    image = drawn(SQUARE, SQUARE / 2)
    assert image[16, 16] == 0
    assert image[16, 10] == 1
    assert image.sum() == pytest.approx(16**2 - 8**2, rel=0.08)


def test_a_triangle_is_not_mirrored():
    """Right angle at the lower left."""
    image = drawn(np.array([[-1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]]))
    assert (image[22, 9], image[9, 22]) == (1, 0)
    assert image.sum() == pytest.approx(16**2 / 2, rel=0.06)


@pytest.mark.parametrize(
    ("change", "area"),
    [
        ({}, 16 * 16),
        ({"radius": 5}, 10 * 10),
        ({"width": 0.5}, 8 * 16),
        ({"weight": 1}, 18 * 18),
        ({"weight": -2}, 12 * 12),
        ({"slant": 0.4}, 16 * 16),
        ({"turn": 0.7}, 16 * 16),
        ({"sway": 0.2}, 16 * 16),
    ],
)
def test_area_in_every_pose(change, area):
    assert drawn(SQUARE, **change).sum() == pytest.approx(area, rel=0.06)


def test_shift_is_right_and_down_in_pixels():
    assert middle(drawn(SQUARE, shift=(3, -5))) == pytest.approx((3, -5), abs=0.1)


def test_slant_leans_to_the_right():
    image = drawn(SQUARE, slant=0.4)
    upper, lower = (image * half[:, None] for half in (np.arange(32) < 16, np.arange(32) >= 16))
    # Halves of a square of 8 pixels' radius have their centres 4 pixels above and below.
    assert middle(upper)[0] == pytest.approx(0.4 * 4, abs=0.2)
    assert middle(lower)[0] == pytest.approx(-0.4 * 4, abs=0.2)


def test_turn_is_clockwise():
    right = SQUARE * [0.4, 0.4] + [0.6, 0]
    assert middle(drawn(right)) == pytest.approx((0.6 * 8, 0), abs=0.2)
    assert middle(drawn(right, turn=np.pi / 2)) == pytest.approx((0, 0.6 * 8), abs=0.2)


def test_sway_bends_sideways():
    rows = drawn(SQUARE, sway=0.3)[9:23]
    centres = (rows * (np.arange(32) - 15.5)).sum(axis=1) / rows.sum(axis=1)
    down = (np.arange(9, 23) - 15.5) / 8
    np.testing.assert_allclose(centres, -0.3 * 8 * np.sin(3 * down), atol=0.4)


def test_edges_are_smooth():
    image = drawn(SQUARE, radius=8.25)
    assert ((image > 0.1) & (image < 0.9)).sum() > 50


def test_every_image_shows_its_own_figure_in_its_own_pose():
    fields = np.stack([distance_field([SQUARE]), distance_field([SQUARE, SQUARE / 2])])
    traits = {name: np.full(3, value, float) for name, value in STILL.items()}
    traits["radius"] = np.array([8.0, 8.0, 5.0])
    images = draw(fields, np.array([1, 0, 1]), Pose(shift=np.zeros((3, 2)), **traits), 32)
    assert images.shape == (3, 32, 32)
    np.testing.assert_array_equal(images[0], drawn(SQUARE, SQUARE / 2))
    np.testing.assert_array_equal(images[1], drawn(SQUARE))
    np.testing.assert_array_equal(images[2], drawn(SQUARE, SQUARE / 2, radius=5))
