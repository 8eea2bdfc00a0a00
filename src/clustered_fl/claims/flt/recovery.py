"""Does client-relatedness discovery work? FLT Algorithm 2, which every row of FLT rests on.

Settings are compared over ten seeds of UMAP at a time, since one of them says little. "s1_mnist"
and so on name the federation, as in `flt_groups_s1_mnist_enc1`.
"""

from collections.abc import Callable, Mapping

import pandas as pd
from sklearn.metrics import adjusted_rand_score

from clustered_fl.claims.evidence import Evidence
from clustered_fl.claims.flt.registry import claim
from clustered_fl.claims.predicates import Measured
from clustered_fl.groupings.distances import ward
from clustered_fl.metrics.newcomers import placements

# Scenario -> name, and k in the code: the number of labels that a client holds.
LABELS = {"s1": ("S1", 2), "s2": ("S2", 3)}
PRINTED = {"k": 5, "distance": "minimum"}
MODES = {"enc2": "each client", "sequential": "one after the other", "pooled": "all together"}
DATA = ("mnist", "cifar")


def trials(evidence: Evidence, name: str, k: int, distance: str, gamma: float = 1) -> pd.DataFrame:
    """Agreement of one setting for every seed of UMAP; no rows if it was not compared."""
    table = evidence.grouping(f"flt_groups_{name}").comparisons
    return table[(table["k"] == k) & (table["distance"] == distance) & (table["gamma"] == gamma)]


def coded(evidence: Evidence, scenario: str, rest: str, gamma: float = 1) -> pd.DataFrame:
    """Agreement with the code's k and distance."""
    return trials(evidence, f"{scenario}_{rest}", LABELS[scenario][1], "matching", gamma)


def _printed(data: str) -> Callable[[Evidence], Measured]:
    def measure(evidence: Evidence) -> Measured:
        found = {s: trials(evidence, f"{s}_{data}_printed", **PRINTED) for s in LABELS}
        agreement = {LABELS[s][0]: float(table["ari"].mean()) for s, table in found.items()}
        components = {
            f"components in {LABELS[s][0]}": float(table["components"].mean())
            for s, table in found.items()
        }
        return agreement | components

    return measure


def _coded(data: str) -> Callable[[Evidence], Measured]:
    def measure(evidence: Evidence) -> Measured:
        found = {name: coded(evidence, s, f"{data}_enc1") for s, (name, _) in LABELS.items()}
        agreement = {name: float(table["ari"].mean()) for name, table in found.items()}
        worst = {f"least in {name}": float(table["ari"].min()) for name, table in found.items()}
        return agreement | worst

    return measure


def _encoders(data: str, modes: tuple[str, ...]) -> Callable[[Evidence], Measured]:
    """Larger difference of the two scenarios between Enc1 and Enc2 tuned in one way."""

    def measure(evidence: Evidence) -> Measured:
        def mean(scenario: str, mode: str) -> float:
            return float(coded(evidence, scenario, f"{data}_{mode}")["ari"].mean())

        return {
            MODES[mode]: max(abs(mean(s, "enc1") - mean(s, mode)) for s in LABELS) for mode in modes
        }

    return measure


def _number(data: str) -> Callable[[Evidence], Measured]:
    """Share of UMAP seeds with five components, in the worse scenario, for several gammas."""

    def measure(evidence: Evidence) -> Measured:
        found = {}
        for gamma in (0.5, 1.0, 2.0):
            tables = [coded(evidence, s, f"{data}_enc1", gamma) for s in LABELS]
            found[f"gamma {gamma:g}"] = min(float((t["components"] == 5).mean()) for t in tables)
        return found

    return measure


def _known_number(data: str) -> Callable[[Evidence], Measured]:
    """Agreement of Ward's clusters of the relatedness, told that there are five."""

    def measure(evidence: Evidence) -> Measured:
        return {name: _by_ward(evidence, f"{s}_{data}_enc1") for s, (name, _) in LABELS.items()}

    return measure


def _by_ward(evidence: Evidence, name: str) -> float:
    """Adjusted Rand index of Ward's clusters of a relatedness, as many as there are in truth."""
    grouping = evidence.grouping(f"flt_groups_{name}")
    clusters = ward(grouping.found.related, len(set(grouping.true_groups)))
    return float(adjusted_rand_score(grouping.true_groups, clusters))


TUNED = {"mnist": ("enc2", "sequential", "pooled"), "cifar": ("enc2",)}
GOOD = {"S1": ">= 0.95", "S2": ">= 0.95"}
for _data in DATA:
    claim(f"FLT-FCR-a-{_data}", GOOD)(_printed(_data))
    claim(f"FLT-FCR-b-{_data}", GOOD)(_coded(_data))
    _near = {MODES[_mode]: "<= 0.05" for _mode in TUNED[_data]}
    claim(f"FLT-FCR-c-{_data}", _near)(_encoders(_data, TUNED[_data]))
    claim(f"FLT-FCR-d-{_data}", {"gamma 1": ">= 0.8"})(_number(_data))
    claim(f"FLT-FCR-e-{_data}", {"S1": "= 1", "S2": "= 1"})(_known_number(_data))


def agreement_of(evidence: Evidence, groupings: Mapping[str, str]) -> Measured:
    """Agreement of groupings that runs average by: shown name -> name.

    Returns:
        Adjusted Rand index of the components, their number, and the share of the pairs of one
        cluster that are related: who is not, does not average with each other.
    """
    found: Measured = {}
    for shown, name in groupings.items():
        measured = evidence.grouping(f"flt_groups_{name}").record["agreement"]
        found[shown] = float(measured["ari"])
        found[f"components, {shown}"] = float(measured["components"])
        found[f"related within clusters, {shown}"] = float(measured["recall"])
    return found


def _used(scenario: str, data: str) -> Callable[[Evidence], Measured]:
    names = {name: f"{scenario}_{data}_{name.lower()}" for name in ("Enc1", "Enc2")}

    def measure(evidence: Evidence) -> Measured:
        return agreement_of(evidence, names)

    return measure


WITHIN = {f"related within clusters, {name}": ">= 0.95" for name in ("Enc1", "Enc2")}
for _data in DATA:
    claim(f"FLT-T1-a-{_data}", {"Enc1": ">= 0.99", "Enc2": ">= 0.99"} | WITHIN)(_used("s1", _data))
    claim(f"FLT-T2-a-{_data}", {"Enc1": ">= 0.95", "Enc2": ">= 0.95"} | WITHIN)(_used("s2", _data))


def _linked(data: str) -> Callable[[Evidence], Measured]:
    def measure(evidence: Evidence) -> Measured:
        table = trials(evidence, f"s2_{data}_printed", **PRINTED)
        means = table[["components", "recall", "false_edges"]].mean()
        return {
            "components": float(means["components"]),
            "related within clusters": float(means["recall"]),
            "related across clusters": float(means["false_edges"]),
        }

    return measure


for _data in DATA:
    claim(f"FLT-T2-b-{_data}", {"components": "= 1"})(_linked(_data))


S4 = {"2,400 clients": "s4_mlp", "600 clients": "s4_cnn"}


TEN = {f"components, {clients}": "= 10" for clients in S4}


@claim("FLT-T4-a", dict.fromkeys(S4, ">= 0.95") | TEN)
def ten_components_are_found(evidence: Evidence) -> Measured:
    """Agreement with the ten clusters of Scenario 4."""
    return agreement_of(evidence, S4)


@claim("FLT-T4-h", dict.fromkeys(S4, "= 1"))
def ten_known_clusters_are_found(evidence: Evidence) -> Measured:
    """Agreement of Ward's clusters of the relatedness, told that there are ten."""
    return {shown: _by_ward(evidence, name) for shown, name in S4.items()}


def _newcomers(run: str) -> Callable[[Evidence], Measured]:
    """Share of newcomers led to their cluster, and by how many points its members do better."""

    def measure(evidence: Evidence) -> Measured:
        table = placements(evidence.folders(run))
        kinds = table.groupby("kind")["right"].mean()
        shares = {f"{kind} clients placed right": float(share) for kind, share in kinds.items()}
        behind = float((table["members"] - table["accuracy"]).mean())
        return {"placed right": float(table["right"].mean()), "points behind": behind} | shares

    return measure


for _claim, _run in {"FLT-A3-c": "flt_newcomers", "FLT-A3-d": "flt_dynamic"}.items():
    claim(_claim, {"placed right": "= 1", "points behind": "<= 2"})(_newcomers(_run))
