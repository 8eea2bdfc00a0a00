"""Algorithm 1 against exhaustive search, and against the rule of the authors' public code."""

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from clustered_fl.methods.groups import (
    Bipartition,
    bipartition,
    cosine_similarity,
    is_correct,
)
from clustered_fl.theory.gradients import draw_gradients
from clustered_fl.theory.literal import exhaustive_bipartition, literal_algorithm
from clustered_fl.theory.search import ROUNDING, Check

GROUPS = 4
CLIENTS_PER_GROUP = 5


def optimality(random: np.random.Generator, trials: int) -> list[Check]:
    """Algorithm 1 as printed, and as single linkage, against all bipartitions of up to 10 clients.

    Every second matrix is rounded to one decimal, so that ties abound; the value of the cut must
    be optimal all the same, though the halves may then differ.
    """
    matrices = [random_similarity(random, tied=bool(trial % 2)) for trial in range(trials)]
    best = np.array([exhaustive_bipartition(matrix).cross_max for matrix in matrices])
    rules = {"algorithm_1_literal": literal_algorithm, "algorithm_1_single_linkage": bipartition}
    return [_optimality_check(name, rule, matrices, best) for name, rule in rules.items()]


def _optimality_check(
    name: str,
    rule: Callable[[np.ndarray], Bipartition],
    matrices: list[np.ndarray],
    best: np.ndarray,
) -> Check:
    excess = np.array([rule(matrix).cross_max for matrix in matrices]) - best
    return Check(
        check=name,
        source="Algorithm 1, eq. (23)",
        trials=len(matrices),
        violations=int((excess > ROUNDING).sum()),
        value=float(excess.max()),
        value_name="largest excess of the cut over the optimum",
        note="optimal",
    )


def random_similarity(random: np.random.Generator, *, tied: bool) -> np.ndarray:
    """Cosines between 2 to 10 random vectors; `tied` rounds them to one decimal."""
    clients, dimension = random.integers(2, 11), random.integers(1, 6)
    similarity = cosine_similarity(random.standard_normal((clients, dimension)))
    np.fill_diagonal(similarity, 1.0)
    return similarity.round(1) if tied else similarity


def complete_linkage(
    random: np.random.Generator, trials: int, dimension: int, gammas: Sequence[float]
) -> pd.DataFrame:
    """How often complete linkage (the authors' code) cuts otherwise than Algorithm 1, and rightly.

    K = 4 groups of five clients, as in the paper's experiments; noise of fixed length.

    Returns: gamma, trials, p_differ, p_correct_single, p_correct_complete.
    """
    group = np.repeat(np.arange(GROUPS), CLIENTS_PER_GROUP)
    drawn = draw_gradients(
        random,
        trials=trials,
        groups=GROUPS,
        clients_per_group=CLIENTS_PER_GROUP,
        dimension=dimension,
    )
    rows = []
    for gamma in gammas:
        outcomes = [_compare(matrix, group) for matrix in drawn.similarity(gamma)]
        shares = np.mean(outcomes, axis=0)
        rows.append((gamma, trials, *shares))
    names = ["gamma", "trials", "p_differ", "p_correct_single", "p_correct_complete"]
    return pd.DataFrame(rows, columns=names)


def _compare(similarity: np.ndarray, group: np.ndarray) -> tuple[bool, bool, bool]:
    single, complete = bipartition(similarity), bipartition(similarity, "complete")
    differ = not np.array_equal(single.first, complete.first)
    return differ, is_correct(single, group), is_correct(complete, group)
