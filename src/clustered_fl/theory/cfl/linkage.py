"""Algorithm 1 compared with exhaustive search, and with the authors' public code."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from clustered_fl.methods.groups import bipartition, cosine_similarity, is_correct
from clustered_fl.theory.cfl.gradients import draw_gradients
from clustered_fl.theory.cfl.literal import exhaustive_bipartition, literal_algorithm
from clustered_fl.theory.search import ROUNDING, Check, counted


def optimality(random: np.random.Generator, trials: int) -> list[Check]:
    """Algorithm 1 as printed, and as single linkage, against all bipartitions of up to 10 clients.

    Every second matrix is rounded to one decimal: ties may change the halves, not the cut's value.
    """
    matrices = [random_similarity(random, tied=bool(trial % 2)) for trial in range(trials)]
    best = np.array([exhaustive_bipartition(matrix).cross_max for matrix in matrices])
    source, name = "Algorithm 1, eq. (23)", "largest excess of the cut over the optimum"
    rules = {"algorithm_1_literal": literal_algorithm, "algorithm_1_single_linkage": bipartition}
    checks = []
    for check, rule in rules.items():
        excess = np.array([rule(matrix).cross_max for matrix in matrices]) - best
        checks.append(counted(check, source, excess > ROUNDING, excess.max(), name, "optimal"))
    return checks


def random_similarity(random: np.random.Generator, *, tied: bool) -> np.ndarray:
    """Cosines between 2 to 10 random vectors; `tied` rounds them to one decimal."""
    clients, dimension = random.integers(2, 11), random.integers(1, 6)
    similarity = cosine_similarity(random.standard_normal((clients, dimension)))
    np.fill_diagonal(similarity, 1.0)
    return similarity.round(1) if tied else similarity


def complete_linkage(
    random: np.random.Generator, trials: int, dimension: int, gammas: Sequence[float]
) -> pd.DataFrame:
    """How often complete linkage (the authors' code) differs from Algorithm 1, and is correct.

    Four groups of five clients, as in the paper's experiments; noise of fixed length.
    """
    size = {"trials": trials, "groups": 4, "clients_per_group": 5, "dimension": dimension}
    drawn = draw_gradients(random, **size)
    group = np.repeat(np.arange(4), 5)
    rows = []
    for gamma in gammas:
        outcomes = []
        # Rounding may make the cosine of two clients with little noise slightly larger than 1.
        for matrix in np.minimum(drawn.similarity(gamma), 1):
            single, complete = bipartition(matrix), bipartition(matrix, "complete")
            differ = not np.array_equal(single.first, complete.first)
            outcomes.append((differ, is_correct(single, group), is_correct(complete, group)))
        rows.append((gamma, trials, *np.mean(outcomes, axis=0)))
    names = ["gamma", "trials", "p_differ", "p_correct_single", "p_correct_complete"]
    return pd.DataFrame(rows, columns=names)
