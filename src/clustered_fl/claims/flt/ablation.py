"""Table V: what rounds, local epochs, participation and the number of clients change (FLT IV-G).

Rows for T = 50 are read at half of the rounds of the run for T = 100. Of the 16 rows of the table
those with 100 clients were run, and one pair with 500; FLT with Enc2 for one pair only, because
encoders that find the same clusters train the same.
"""

from collections.abc import Callable
from itertools import product

from clustered_fl.claims.evidence import Evidence
from clustered_fl.claims.flt.columns import NEAR, summary
from clustered_fl.claims.flt.registry import claim
from clustered_fl.claims.flt.scores import accuracy_of, rounds_of
from clustered_fl.claims.predicates import Measured

# Column -> run -> published accuracy after 50 and after 100 rounds.
PUBLISHED: dict[str, dict[str, tuple[float, float]]] = {
    "fedsem": {
        "t5_fedsem": (71.85, 73.42),
        "t5_fedsem_e1": (64.32, 69.33),
        "t5_fedsem_half": (74.29, 74.15),
        "t5_fedsem_half_e1": (72.94, 77.37),
        "t5_500_fedsem": (71.24, 73.21),
    },
    "enc1": {
        "t5_flt": (79.45, 79.95),
        "t5_flt_e1": (66.23, 72.44),
        "t5_flt_half": (80.02, 79.72),
        "t5_flt_half_e1": (73.78, 79.30),
        "t5_500_flt": (80.27, 81.77),
    },
    "enc2": {"t5_enc2": (78.64, 79.62)},
}
SHARES = (0.5, 1.0)


def at(evidence: Evidence, run: str, share: float) -> float:
    """Accuracy in % after this share of the run's rounds."""
    return accuracy_of(evidence, run, share * rounds_of(evidence, run))


def _numbers(column: str) -> Callable[[Evidence], Measured]:
    def measure(evidence: Evidence) -> Measured:
        found = {
            f"{run.removeprefix('t5_')}, T = {100 * share:g}": at(evidence, run, share) - expected
            for run, published in PUBLISHED[column].items()
            for share, expected in zip(SHARES, published, strict=True)
        }
        return summary(found)

    return measure


for _column in PUBLISHED:
    claim(f"FLT-T5-numbers-{_column}", {"largest difference": f"<= {NEAR:g}"})(_numbers(_column))


def _margins(evidence: Evidence) -> Measured:
    """Smallest and largest lead of FLT over FedSEM in the rows that were run."""
    pairs = [*zip(PUBLISHED["enc1"], PUBLISHED["fedsem"], strict=True), ("t5_enc2", "t5_fedsem")]
    found = [
        at(evidence, flt, share) - at(evidence, fedsem, share)
        for (flt, fedsem), share in product(pairs, SHARES)
    ]
    return {"smallest lead": min(found), "largest lead": max(found), "rows": float(len(found))}


claim("FLT-T5-a", {"smallest lead": "> 0"})(_margins)
# Half a point around "roughly 2%-8%".
claim("FLT-T5-f", {"smallest lead": ">= 1.5", "largest lead": "<= 8.5"})(_margins)


@claim("FLT-T5-b", {"smallest gain": "> 0"})
def more_rounds_help(evidence: Evidence) -> Measured:
    """Points gained in the second half of the rounds, all runs."""
    runs = [run for column in PUBLISHED.values() for run in column]
    found = [at(evidence, run, 1.0) - at(evidence, run, 0.5) for run in runs]
    return {"smallest gain": min(found), "largest gain": max(found)}


def gains(evidence: Evidence, before: str, after: str) -> Measured:
    """Points gained from runs with one ending to those with another, by method and T."""
    methods = {"FedSEM": "t5_fedsem", "FLT": "t5_flt"}
    return {
        f"{name}, T = {100 * share:g}": at(evidence, run + after, share)
        - at(evidence, run + before, share)
        for (name, run), share in product(methods.items(), SHARES)
    }


@claim("FLT-T5-c", {"smallest gain": "> 0"})
def more_epochs_help(evidence: Evidence) -> Measured:
    """Points gained by five epochs instead of one, a fifth or half of the clients participating."""
    fifth = gains(evidence, "_e1", "")
    half = {f"{key}, half": value for key, value in gains(evidence, "_half_e1", "_half").items()}
    return {"smallest gain": min([*fifth.values(), *half.values()])} | fifth | half


@claim("FLT-T5-d", {"smallest gain": "> 0"})
def more_participants_help(evidence: Evidence) -> Measured:
    """Points gained by half of the clients participating instead of a fifth, one or five epochs."""
    one, five = gains(evidence, "_e1", "_half_e1"), gains(evidence, "", "_half")
    five = {f"{key}, five epochs": value for key, value in five.items()}
    return {"smallest gain": min([*one.values(), *five.values()])} | one | five


@claim("FLT-T5-e", {"largest change": "<= 3"})
def number_of_clients_hardly_matters(evidence: Evidence) -> Measured:
    """Points gained with 500 clients instead of 100, after equally many rounds."""
    found = {}
    for name, few, many in (
        ("FedSEM", "t5_fedsem", "t5_500_fedsem"),
        ("FLT", "t5_flt", "t5_500_flt"),
    ):
        rounds = min(rounds_of(evidence, run) for run in (few, many))
        for share in SHARES:
            before, after = (accuracy_of(evidence, run, share * rounds) for run in (few, many))
            found[f"{name}, T = {100 * share:g}"] = after - before
    return {"largest change": max(abs(value) for value in found.values())} | found
