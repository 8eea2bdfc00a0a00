"""CFL Fig. 3: how well groups are separated, by their number K and the noise ratio gamma."""

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from pydantic import NonNegativeFloat, PositiveFloat, PositiveInt

from clustered_fl.randomness import generator
from clustered_fl.theory.cfl.bounds import guaranteed_noise, separation_theorem
from clustered_fl.theory.cfl.gradients import NOISES, Noise, NoisyGradients, draw_gradients
from clustered_fl.theory.cfl.spanning import undivided, weakest_links, weakest_within
from clustered_fl.theory.ranges import Listed, Share, TwoOrMore
from clustered_fl.theory.search import ROUNDING
from clustered_fl.theory.tables import leaves


@leaves("cells", "boundary")
def separation_quality(
    seed: int,
    *,
    groups_max: TwoOrMore = 20,
    gamma_max: NonNegativeFloat = 3.0,
    gamma_step: PositiveFloat = 0.05,
    trials: PositiveInt = 500,
    dimension: TwoOrMore = 100,
    clients_per_group: TwoOrMore = 3,
    noises: Listed[Noise] = NOISES,
    level: Share = 0.98,
) -> dict[str, pd.DataFrame]:
    """Simulate how often the bipartition is correct and the separation gap positive (CFL Fig. 3).

    Dimension and clients per group are the paper's; it states neither trials nor ranges.

    Args:
        groups_max: K runs from 2 to this.
        gamma_max, gamma_step: noise levels run from 0 to gamma_max in these steps.
        noises: "gauss" (normal, the largest ratio is gamma) and/or "fixed" (all ratios are gamma).
        level: probability that counts as "close to one" in table `boundary`.
    Returns:
        cells: noise, groups, gamma, trials, p_gap_positive, p_correct, guaranteed (Theorem 1
            promises separation if all ratios are gamma), p_guaranteed (share of trials whose own
            ratios carry the promise), theorem_violations (trials that break eq. 17 or eq. 19, or
            the promise), corollary_violations (gap positive, yet incorrect).
        boundary: see `boundaries`.
    """
    # Rounded, because multiples of 0.05 are otherwise not found under their printed value.
    gammas = np.round(np.arange(round(gamma_max / gamma_step) + 1) * gamma_step, 10)
    size = {"trials": trials, "clients_per_group": clients_per_group, "dimension": dimension}
    cells = []
    for noise, groups in product(noises, range(2, groups_max + 1)):
        random = generator(seed, "separation_quality", groups)
        drawn = draw_gradients(random, groups=groups, noise=noise, **size)
        cells += [{"noise": noise, **_cell(drawn, groups, gamma)} for gamma in gammas]
    table = pd.DataFrame(cells)
    return {"cells": table, "boundary": boundaries(table, level)}


def _cell(drawn: NoisyGradients, groups: int, gamma: float) -> dict[str, Any]:
    similarity = drawn.similarity(gamma)
    cuts = weakest_links(similarity)
    intra = weakest_within(similarity, groups)
    promise = separation_theorem(drawn.ratios(gamma), groups)
    positive = intra > cuts.similarity
    correct = undivided(cuts.first, groups)
    broken = (intra < promise.intra - ROUNDING) | (cuts.similarity > promise.cross + ROUNDING)
    return {
        "groups": groups,
        "gamma": gamma,
        "trials": len(similarity),
        "p_gap_positive": positive.mean(),
        "p_correct": correct.mean(),
        "guaranteed": gamma < guaranteed_noise(groups),
        "p_guaranteed": promise.separates.mean(),
        "theorem_violations": (promise.applies & (broken | promise.separates & ~correct)).sum(),
        "corollary_violations": (positive & ~correct).sum(),
    }


def boundaries(cells: pd.DataFrame, level: float) -> pd.DataFrame:
    """Largest noise level per noise kind and K up to which each probability is `level` or above."""
    rows = []
    for (noise, groups), part in cells.sort_values("gamma").groupby(["noise", "groups"]):
        row = {"noise": noise, "groups": groups, "gamma_guaranteed": guaranteed_noise(groups)}
        for event in ("gap_positive", "correct"):
            unbroken = (part[f"p_{event}"] >= level).cummin()
            row[f"gamma_{event}"] = part["gamma"][unbroken].max()
        rows.append(row)
    return pd.DataFrame(rows)
