"""Contours of a risk in the plane of two parameters (CFL Fig. 2)."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from clustered_fl.figures import SMALL

LEVELS = (0.1, 0.5, 1, 2, 4, 6, 8)
# Where labels are, beside the path, and how far from the upper border at least.
_ACROSS, _ROOM = -0.5, 0.2


def draw_risk(axis: Axes, risk: pd.DataFrame) -> None:
    """Draw contours of a risk [theta2, theta1], labelled above its minimum where all can be read.

    Limits of the axis must be final. A contour without a label there has none, as matplotlib would
    write it across the border.
    """
    look = {"levels": LEVELS, "colors": "#9aa7b5", "linewidths": 0.7}
    lines = axis.contour(risk.columns, risk.index, risk, **look)
    places = label_places(risk, axis.get_ylim()[1] - _ROOM)
    axis.clabel(lines, manual=places, fontsize=SMALL, fmt="%g")


def label_places(risk: pd.DataFrame, top: float) -> list[tuple[float, float]]:
    """Points below `top` where the contours cross a vertical line, above the lowest point on it."""
    across = risk.columns[np.abs(risk.columns - _ACROSS).argmin()]
    above = risk[across].loc[risk[across].idxmin() :]
    heights = np.interp(LEVELS, above, above.index, left=np.nan, right=np.nan)
    return [(float(across), float(height)) for height in heights if height <= top]
