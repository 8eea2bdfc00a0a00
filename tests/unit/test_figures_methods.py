"""Methods look different to all readers, also to those who do not see all colours."""

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from clustered_fl.figures import methods
from clustered_fl.ledger.reading import load_ledger

# From linear RGB to what a dichromat sees, in linear RGB (Viénot, Brettel, Mollon: Digital video
# colourmaps for checking the legibility of displays by dichromats. Color Res. Appl. 24, 1999).
SIGHT = {
    "all colours": np.eye(3),
    "protanopia": [[0.11238, 0.88762, 0], [0.11238, 0.88762, 0], [0.00401, -0.00401, 1]],
    "deuteranopia": [[0.29275, 0.70725, 0], [0.29275, 0.70725, 0], [-0.02234, 0.02234, 1]],
}
# From linear sRGB to XYZ (IEC 61966-2-1), of which the second is the luminance.
XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
# Two colours that are 2.3 apart can just be told apart side by side; thin lines need far more.
APART = 20.0
LEDGERS = Path(__file__).parents[2] / "config" / "papers"
HUES = [*methods.FAMILIES, methods.OTHER]


def linear(colour) -> np.ndarray:
    rgb = np.array(to_rgb(colour))
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def lab(colour, sight: str) -> np.ndarray:
    """CIELAB of a colour as it is seen, relative to white."""
    seen = np.clip(np.array(SIGHT[sight]) @ linear(colour), 0, 1)
    x, y, z = np.cbrt(XYZ @ seen / XYZ.sum(axis=1))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def distance(first, second, sight: str) -> float:
    return float(np.linalg.norm(lab(first, sight) - lab(second, sight)))


def contrast(colour) -> float:
    """With white (WCAG 2.1)."""
    return 1.05 / (XYZ[1] @ linear(colour) + 0.05)


def test_the_measures_are_those_of_their_definitions():
    assert contrast("white") == pytest.approx(1)
    assert contrast("black") == pytest.approx(21)
    assert lab("white", "all colours") == pytest.approx([100, 0, 0], abs=0.01)
    assert lab("red", "all colours") == pytest.approx([53.2, 80.1, 67.2], abs=0.1)
    # Red and green of equal lightness: what the simulations are for.
    assert distance("#c00000", "#5a6c00", "all colours") > 60
    assert distance("#c00000", "#5a6c00", "deuteranopia") < APART


@pytest.mark.parametrize("sight", SIGHT)
@pytest.mark.parametrize("pair", list(combinations(HUES, 2)), ids=" ".join)
def test_hues_stay_apart(pair, sight):
    assert distance(*pair, sight) >= APART


@pytest.mark.parametrize("hue", HUES)
def test_hues_are_seen_on_white(hue):
    assert contrast(hue) >= 3


def told_apart(one: dict, other: dict) -> bool:
    """By colour for every reader, or by dashes and by marker."""
    if all(distance(one["color"], other["color"], sight) >= APART for sight in SIGHT):
        return True
    return one["linestyle"] != other["linestyle"] and one["marker"] != other["marker"]


def test_all_methods_are_told_apart():
    pairs = combinations(methods.LOOKS, 2)
    alike = [pair for pair in pairs if not told_apart(*(methods.LOOKS[name] for name in pair))]
    assert alike == []


def test_methods_of_one_figure_differ_in_grey():
    shown = [methods.LOOKS[name] for name in ("fedavg", "pca", "cfl", "fedsem", "ifca", "flt")]
    assert len({look["marker"] for look in shown}) == len(shown)


def test_a_method_is_in_one_family():
    names = [name for own in methods.FAMILIES.values() for name in own]
    assert len(names) == len(set(names)) == len(methods.LOOKS)


def test_the_families_have_the_methods_of_the_benchmark():
    rows = load_ledger(LEDGERS / "ground.yaml").tables["matrix"].rows
    assert {name for name, row in rows.items() if not row.hidden} == set(methods.LOOKS)


def test_methods_without_a_family_differ_too_and_hide_no_known_one():
    names = [*(f"mine{number}" for number in range(20)), "cfl", "fedavg"]
    found = methods.looks(names)
    assert list(found) == names
    assert len({tuple(map(str, look.values())) for look in found.values()}) == len(names)
    assert {found[name]["color"] for name in names[:20]} == {methods.OTHER}
    assert found["cfl"] == methods.LOOKS["cfl"]
