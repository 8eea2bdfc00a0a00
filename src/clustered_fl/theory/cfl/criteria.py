"""Corollary 1 and the criterion of eq. (36): when is a bipartition trustworthy?"""

from collections.abc import Sequence
from itertools import product

import numpy as np
import pandas as pd

from clustered_fl.randomness import generator
from clustered_fl.theory.cfl.gradients import draw_gradients
from clustered_fl.theory.cfl.spanning import undivided, weakest_links, weakest_within
from clustered_fl.theory.search import Check


def trust(
    seed: int,
    trials: int,
    dimensions: Sequence[int],
    groups: Sequence[int],
    gammas: Sequence[float],
) -> pd.DataFrame:
    """Count, per setting, combinations of gap, correctness and the criterion of eq. (36).

    Returns: dimension, groups, gamma, trials, and the number of trials in which the cut is
        `correct`, the gap is `positive`, it is `positive_incorrect` or `correct_not_positive`, the
        criterion `gamma_max < sqrt((1 - alpha_cross^max) / 2)` `fires`, or `fires_incorrect`; and
        `threshold`, the mean right side of the criterion (CFL Corollary 1, eqs. 22, 36, 45).
    """
    rows = []
    for dimension, count in product(dimensions, groups):
        random = generator(seed, "trust", dimension, count)
        drawn = draw_gradients(random, trials=trials, groups=count, dimension=dimension)
        for gamma in gammas:
            key = {"dimension": dimension, "groups": count, "gamma": gamma, "trials": trials}
            rows.append(key | _tally(drawn.similarity(gamma), count, gamma))
    return pd.DataFrame(rows)


def _tally(similarity: np.ndarray, groups: int, gamma: float) -> dict[str, float]:
    cut = weakest_links(similarity)
    correct = undivided(cut.first, groups)
    positive = weakest_within(similarity, groups) > cut.similarity
    threshold = np.sqrt((1 - cut.similarity) / 2)
    fires = gamma < threshold
    return {
        "correct": correct.sum(),
        "positive": positive.sum(),
        "positive_incorrect": (positive & ~correct).sum(),
        "correct_not_positive": (correct & ~positive).sum(),
        "fires": fires.sum(),
        "fires_incorrect": (fires & ~correct).sum(),
        "threshold": threshold.mean(),
    }


def trust_checks(counts: pd.DataFrame) -> list[Check]:
    """Corollary 1, its converse (arXiv: "if and only if") and eq. (36), from the table `trust`."""
    total = counts.sum()
    return [
        Check(
            check="corollary_1",
            source="Corollary 1, eq. (45)",
            trials=int(total["positive"]),
            violations=int(total["positive_incorrect"]),
            value=total["positive"] / total["trials"],
            value_name="share of bipartitions with a positive gap",
            note="holds: a positive gap implies a correct bipartition",
        ),
        Check(
            check="corollary_1_converse",
            source="arXiv Remark 2, eqs. (30), (45)",
            trials=int(total["correct"]),
            violations=int(total["correct_not_positive"]),
            value=total["correct_not_positive"] / total["correct"],
            value_name="share of correct bipartitions without a positive gap",
            note="false: arXiv's 'if and only if' holds in one direction only",
        ),
        Check(
            check="criterion_36",
            source="eq. (36)",
            trials=int(total["fires"]),
            violations=int(total["fires_incorrect"]),
            value=1 - total["fires"] / total["correct"],
            value_name="share of correct bipartitions that it does not recognise",
            note="holds, and is conservative",
        ),
    ]
