"""All numerical checks of CFL's theory in one study."""

from collections.abc import Sequence

import pandas as pd

from clustered_fl.randomness import generator
from clustered_fl.theory.cfl import criteria, lemmas, linkage, projections, theorem
from clustered_fl.theory.ranges import require_at_least
from clustered_fl.theory.tables import leaves

SEARCHES = (
    theorem.theorem_1_intra,
    theorem.theorem_1_cross,
    theorem.theorem_1_own_pairs,
    theorem.theorem_1_empirical,
    theorem.remark_1,
    theorem.remark_1_empirical,
    lemmas.lemma_2,
    lemmas.lemma_3_corrected,
    lemmas.lemma_3_printed,
    lemmas.lemma_4,
)


@leaves("checks", "trust", "linkage", "counterexample")
def theorem_checks(
    seed: int,
    *,
    starts: int = 200,
    steps: int = 100,
    trials: int = 500,
    dimension: int = 100,
    orthonormal_dimension: int = 2000,
    groups: Sequence[int] = (2, 3, 4, 5, 10),
    gammas: Sequence[float] = (0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1.0, 1.5, 2.0),
    linkage_gammas: Sequence[float] = (0.3, 0.5, 1.0, 2.0),
) -> dict[str, pd.DataFrame]:
    """Look for violations of every statement of the CFL papers that can be computed.

    Args:
        starts, steps: hill climbs per dimension and number of vectors or groups, and their length.
        trials: simulated federations per setting.
        dimension: of the simulated gradients; `trust` also has 2, where many bipartitions fail.
        orthonormal_dimension: of the rotation of eq. (41).
        groups, gammas: settings of the tables `trust`; `linkage_gammas` of `linkage`.
    Returns: checks: see `Check`; trust: see `criteria.trust`; linkage: see
        `linkage.complete_linkage`; counterexample: see `theorem.counterexample`.
    Raises: InputError for settings out of range.
    """
    require_at_least(1, starts=starts, trials=trials, dimension=dimension)
    require_at_least(0, steps=steps)
    require_at_least(2, orthonormal_dimension=orthonormal_dimension, groups=min(groups))
    trust = criteria.trust(seed, trials, (2, dimension), groups, gammas)
    checks = [
        *(check(generator(seed, check.__name__), starts, steps) for check in SEARCHES),
        theorem.theorem_1_counterexample(),
        lemmas.lemma_4_fan(),
        *criteria.trust_checks(trust),
        *projections.projection(generator(seed, "projection"), trials),
        projections.orthonormal_invariance(generator(seed, "orthonormal"), orthonormal_dimension),
        *linkage.optimality(generator(seed, "optimality"), trials),
    ]
    random = generator(seed, "linkage")
    return {
        "checks": pd.DataFrame(checks),
        "trust": trust,
        "linkage": linkage.complete_linkage(random, trials, dimension, linkage_gammas),
        "counterexample": theorem.counterexample(),
    }
