"""Units of what claims measure. What is not listed is a share, an index or a count: a bare number.

Measures return bare numbers, because bounds are compared without units; a reader needs both.
"""

POINTS, PERCENT, ROUNDS, SQUARED = "points", "%", "rounds", "squared points"

# Measure -> the unit of its numbers, for those that have one.
_OF_MEASURES = {
    **dict.fromkeys(("measures.lead", "measures.differences", "measures.near_published"), POINTS),
    **dict.fromkeys(("flt.margins", "flt.second_half", "flt.near_published"), POINTS),
    **dict.fromkeys(("ground.lead", "ground.later_lead", "ground.regret"), POINTS),
    "ground.surplus_of_the_worst": POINTS,
    **dict.fromkeys(("cfl.accuracy_before_splits", "cfl.gain_of_first_pure_cluster"), POINTS),
    **dict.fromkeys(("validation.differences", "validation.unrest"), POINTS),
    **dict.fromkeys(("measures.accuracy", "measures.gained", "flt.columns"), PERCENT),
    **dict.fromkeys(("measures.rounds_to", "validation.rounds_ahead"), ROUNDS),
    "measures.fairness": SQUARED,
}

# Beginning of a number's name -> its unit in these measures, before that of the measure.
_OF_NAMES = {
    ("measures.near_published", "share "): "",
    ("measures.near_published", "within "): "",
    ("flt.near_published", "share "): "",
    ("flt.near_published", "within "): "",
    ("measures.gained", "points"): POINTS,
    ("flt.columns", "first minus second"): POINTS,
    ("measures.fairness", "columns"): "",
    ("measures.fairness", "share "): "",
    ("cfl.accuracy_before_splits", "accuracy"): PERCENT,
    ("cfl.gain_of_first_pure_cluster", "after round"): "",
    ("cfl.clients_behind", "largest loss"): POINTS,
    ("cfl.newcomers", "behind members"): POINTS,
    ("cfl.difference", "accuracy difference"): POINTS,
    ("flt.leaves", "points"): POINTS,
    ("flt.label_0", "variance"): SQUARED,
    ("flt.label_0", "last cluster"): PERCENT,
    ("flt.label_0", "accuracy"): PERCENT,
    ("flt.placed", "points"): POINTS,
    ("validation.differences", "accuracy"): PERCENT,
    ("validation.forgotten", "points"): POINTS,
    ("validation.forgotten", ""): PERCENT,
}


def unit(measure: str, name: str) -> str:
    """Unit of a number.

    Args:
        measure: module and function below `clustered_fl.claims`.
        name: of the number, as the measure returns it.
    """
    for (known, beginning), found in _OF_NAMES.items():
        if known == measure and name.startswith(beginning):
            return found
    return _OF_MEASURES.get(measure, "")
