"""What is said of whole columns of FLT's Tables I to IV: the numbers themselves, and fairness."""

from collections.abc import Callable, Mapping
from functools import partial

from clustered_fl.claims.evidence import Evidence
from clustered_fl.claims.flt.registry import claim
from clustered_fl.claims.flt.scores import CODED, NAMES, PUBLISHED, accuracy_of, variance_of
from clustered_fl.claims.predicates import Measured

TABLES = {"s1": "T1", "s2": "T2", "s3": "T3", "s4": "T4"}
# Methods that are FLT; of these all must be fairer than the others, but not than each other.
FLT = ("enc1", "enc2", "flt", "c2", "c3", "c5")
GENERIC = ("enc1", "enc2", "flt")
OTHERS = [NAMES[method] for method in NAMES if method not in FLT]
NEAR = 2.0


def claim_name(column: str, what: str) -> str:
    """Claim of a column: "s1_mnist" and "numbers" -> "FLT-T1-numbers-mnist"."""
    scenario, _, part = column.partition("_")
    return f"FLT-{TABLES[scenario]}-{what}-{part}"


def summary(differences: Measured) -> Measured:
    """The largest difference to what is published, and how many are small, before all of them.

    Args:
        differences: ours minus published, in points, by what is compared.
    """
    sizes = [abs(value) for value in differences.values()]
    near = sum(size <= NEAR for size in sizes)
    return {"largest difference": max(sizes), "within 2 points": float(near)} | differences


def _numbers(column: str, methods: Mapping[str, str]) -> Callable[[Evidence], Measured]:
    """Differences of a column, its methods measured on these runs."""

    def measure(evidence: Evidence) -> Measured:
        found = {
            NAMES[each]: accuracy_of(evidence, f"{column}_{run}") - PUBLISHED[column][each][0]
            for each, run in methods.items()
        }
        return summary(found)

    return measure


# "numbers": participants averaged, as printed; "coded": as the public code did it.
for _column, _methods in PUBLISHED.items():
    _printed = {_method: _method for _method in _methods}
    _bound = {"largest difference": f"<= {NEAR:g}"}
    claim(claim_name(_column, "numbers"), _bound)(_numbers(_column, _printed))
    if _column in CODED:
        claim(claim_name(_column, "coded"), _bound)(_numbers(_column, CODED[_column]))


def fairness(evidence: Evidence, column: str) -> Measured:
    """Variance over clients of every method, and by how much the others' least exceeds FLT's."""
    found = {each: variance_of(evidence, f"{column}_{each}") for each in PUBLISHED[column]}
    ours = max(value for each, value in found.items() if each in GENERIC)
    others = min(value for each, value in found.items() if each not in FLT)
    shown = {NAMES[each]: value for each, value in found.items()}
    return {"least of others over FLT": others - ours} | shown


@claim("FLT-T4-f-mlp", {"others with more": "> 0.5"})
def fairer_than_most(evidence: Evidence) -> Measured:
    """Share of the other methods whose variance over clients is above FLT's, Scenario 4, MLP."""
    found = fairness(evidence, "s4_mlp")
    others = [value for name, value in found.items() if name in OTHERS]
    more = sum(value > found["FLT"] for value in others) / len(others)
    return {"others with more": more} | found


@claim("FLT-T2-f", {"columns": ">= 3"})
def fairest_nearly_everywhere(evidence: Evidence) -> Measured:
    """Columns of Tables I and II in which FLT has the least variance over clients, of four."""
    ahead = {
        column: fairness(evidence, column)["least of others over FLT"]
        for column in ("s1_mnist", "s1_cifar", "s2_mnist", "s2_cifar")
    }
    return {"columns": float(sum(value >= 0 for value in ahead.values()))} | ahead


# Column -> claim; the letters are those of the claims on the same table.
FAIRNESS = {
    "s1_mnist": "FLT-T1-e-mnist",
    "s1_cifar": "FLT-T1-e-cifar",
    "s2_mnist": "FLT-T2-e-mnist",
    "s2_cifar": "FLT-T2-e-cifar",
    "s3_mlp": "FLT-T3-f-mlp",
    "s3_cnn": "FLT-T3-f-cnn",
    "s4_cnn": "FLT-T4-f-cnn",
}
for _column, _claim in FAIRNESS.items():
    claim(_claim, {"least of others over FLT": ">= 0"})(partial(fairness, column=_column))
