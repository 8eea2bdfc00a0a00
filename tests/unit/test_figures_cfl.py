"""Drawings of CFL: what is drawn is what the criteria compare."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import PolyCollection

from clustered_fl import figures
from clustered_fl.figures.cfl import landscapes
from clustered_fl.figures.cfl import norms as drawings

MEAN = [4.0, 1.0, 8.0, 2.0]


@pytest.fixture
def axis():
    figure, (axis,) = figures.stack(1)
    yield axis
    figures.plt.close(figure)


@pytest.fixture
def norms() -> pd.DataFrame:
    """Of one seed: the mean update of `MEAN`, clients above it."""
    parts = [
        pd.DataFrame({"round": range(4), "metric": metric, "value": [at * each for each in MEAN]})
        for at, metric in enumerate(reversed(drawings.NAMES), start=1)
    ]
    return pd.concat(parts).assign(run="r", seed=0, scope="group", member=0)


def test_thresholds_are_those_of_a_server_that_knows_the_past_only(axis, norms):
    drawings.draw_thresholds(axis, norms)
    (line,) = axis.get_lines()
    assert line.get_ydata().tolist() == pytest.approx([0.4, 0.4, 0.8, 0.8])
    (band,) = axis.findobj(PolyCollection)
    heights = band.get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == pytest.approx((0.4, 8.0))


def test_norms_differ_in_their_dashes_and_have_one_entry_of_the_legend(axis, norms):
    drawings.draw_norms(axis, pd.concat([norms, norms.assign(seed=1)]), 1)
    handles, labels = axis.get_legend_handles_labels()
    assert labels == list(drawings.NAMES.values())
    assert len({str(handle._dash_pattern) for handle in handles}) == len(handles)


def test_contours_are_labelled_within_the_axes(axis):
    across, up = np.linspace(-3, 3, 61), np.linspace(-3, 3, 61)
    risk = pd.DataFrame(across**2 + up[:, None] ** 2, index=up, columns=across)
    axis.set(xlim=(-2, 2), ylim=(-1.5, 1.5))
    landscapes.draw_risk(axis, risk)
    labels = {text.get_text(): text.get_position() for text in axis.texts}
    assert set(labels) == {"0.5", "1"}  # the others end at the border, or miss the line of labels
    assert labels["1"] == pytest.approx((-0.5, 0.75**0.5), abs=0.05)
