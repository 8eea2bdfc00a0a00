"""Names of arrows in the drawings of CFL's proof of Theorem 1."""

from collections.abc import Collection

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

KINDS = ("true", "noise", "client")
"""Kinds of arrows."""
# Distances of names from the origin: in lengths of their arrow where nothing is beyond it; beyond
# circles of noise in lengths of the true gradient, those of clients before those of gradients.
_BEYOND, _CLIENT, _GRADIENT = 1.15, 1.4, 1.6


def draw_names(
    axis: Axes, arrows: pd.DataFrame, tips: np.ndarray, compared: Collection[str] = ()
) -> None:
    """Write the names of all arrows but noise, and widen the limits of the axis to them.

    Args:
        arrows: columns name, kind ("true", "noise" or "client"), from1 and from2; every client's
            noise is one row, in the order of the clients.
        tips: ends of the arrows [n, 2].
        compared: the clients to name beyond circles of noise; if empty there are no such circles.
    """
    true, noise, client = ((arrows["kind"] == kind).to_numpy() for kind in KINDS)
    named, reach = ~noise, np.full(len(arrows), _BEYOND)
    if compared:
        named = true | (client & arrows["name"].isin(compared).to_numpy())
        gradients = np.linalg.norm(arrows.loc[noise, ["from1", "from2"]], axis=1)
        reach[true] = _GRADIENT
        reach[client] = _CLIENT * gradients / np.linalg.norm(tips[client], axis=1)
    places = (tips * reach[:, None])[named]
    # Limits count points that are not seen, but no texts.
    axis.plot(*(1.05 * places).T, " ")
    for name, place in zip(arrows["name"][named], places, strict=True):
        axis.text(*place, name, ha="center", va="center", fontsize=8)
