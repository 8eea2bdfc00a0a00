"""All numerical checks of CFL's theory in one study."""

import pandas as pd
from pydantic import NonNegativeFloat, NonNegativeInt, PositiveInt

from clustered_fl.randomness import generator
from clustered_fl.theory.cfl import criteria, lemmas, linkage, projections, theorem
from clustered_fl.theory.ranges import Listed, TwoOrMore
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
    starts: PositiveInt = 200,
    steps: NonNegativeInt = 100,
    trials: PositiveInt = 500,
    dimension: TwoOrMore = 100,
    orthonormal_dimension: TwoOrMore = 2000,
    groups: Listed[TwoOrMore] = (2, 3, 4, 5, 10),
    gammas: Listed[NonNegativeFloat] = (0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1.0, 1.5, 2.0),
    linkage_gammas: Listed[NonNegativeFloat] = (0.3, 0.5, 1.0, 2.0),
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
    """
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
