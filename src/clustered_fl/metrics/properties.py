"""The measured evidence for the properties that CFL claims, as sentences (CFL Table II).

The families are those that the ledger lists for the artefact `cfl_table2`. Where a family has
several seeds, numbers are means over them.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from clustered_fl.metrics import agreement, criteria, curves, gap
from clustered_fl.metrics.curves import Folders
from clustered_fl.metrics.overview import overview

Families = Mapping[str, Folders]


def evidence(families: Families) -> dict[str, str]:
    """One sentence per property, in the order of the paper's table.

    A family without seeds at this scale is passed over where others give the same evidence.
    """
    families = {name: runs for name, runs in families.items() if runs}
    state = overview(families).groupby("run")[["score", "groups", "agreement"]].mean()
    records = {name: curves.records({name: runs}) for name, runs in families.items()}
    return {
        "non-convex objectives": _non_convex(state, records),
        "no change of the FedAvg protocol": _protocol(records),
        "no major overhead for clients": _overhead(records),
        "number of clusters not needed": _number(state),
        "theoretical guarantees": _guarantees(families),
        "formal privacy guarantees possible": _privacy(state, records),
        "clusters only if necessary": _necessity(families),
        "varying client populations": _newcomers(state, records),
    }


def _found(state: pd.DataFrame, run: str) -> str:
    row = state.loc[run]
    plural = "" if row["groups"] == 1 else "s"
    return f"{row['groups']:.3g} group{plural}, agreement {row['agreement']:.2f}"


def _non_convex(state: pd.DataFrame, records: Mapping[str, list]) -> str:
    score = state["score"].map("{:.3f}".format)
    sizes = [records[name][0]["parameters"] for name in ("cfl_fig9", "cfl_permuted")]
    return (
        f"CIFAR-10, {sizes[0]:,} parameters: {_found(state, 'cfl_fig9')}, "
        f"accuracy {score['cfl_fig9']}. MNIST, {sizes[1]:,} parameters: "
        f"{_found(state, 'cfl_permuted')}, accuracy {score['cfl_permuted']} against "
        f"{score['cfl_permuted_fedavg']} of FedAvg"
    )


def _protocol(records: Mapping[str, list]) -> str:
    cfl, fedavg = (records[name][0]["parameters"] for name in ("cfl_permuted", _BASELINE))
    return (
        f"a client sends its weight update, {cfl:,} numbers a round (FedAvg: {fedavg:,}); "
        "groups come from these updates alone"
    )


_BASELINE = "cfl_permuted_fedavg"


def _overhead(records: Mapping[str, list]) -> str:
    cfl, fedavg = (records[name][0]["config"]["training"] for name in ("cfl_permuted", _BASELINE))
    equal = "the same local training as" if cfl == fedavg else "other local training than"
    return f"{equal} under FedAvg: {cfl['epochs']} epochs, batches of {cfl['batch_size']}"


def _number(state: pd.DataFrame) -> str:
    names = {"CIFAR-10": "cfl_fig9_auto", "MNIST": "cfl_permuted_auto"}
    parts = [f"{data}: {_found(state, run)}" for data, run in names.items() if run in state.index]
    return ". ".join(["splits decided by the criteria, 4 true clusters", *parts])


def _guarantees(families: Families) -> str:
    computed = [runs for runs in families.values() if any(runs.values())]
    frame = pd.concat([curves.measurements(runs) for runs in computed])
    counts = gap.certificates(frame)
    return (
        f"the gap g was positive {counts['positive']:,} times (groups and rounds), and the "
        f"bipartition correct in {counts['correct']:,} of them; it was correct another "
        f"{counts['uncertified']:,} times although g was not positive"
    )


def _privacy(state: pd.DataFrame, records: Mapping[str, list]) -> str:
    pairs = zip(records["cfl_permuted"], records["cfl_permuted_hidden"], strict=True)
    equal = min(agreement.index(plain["groups"], hidden["groups"]) for plain, hidden in pairs)
    change = abs(state["score"]["cfl_permuted"] - state["score"]["cfl_permuted_hidden"])
    return (
        f"with parameters in a secret order: agreement {equal:.2f} with the groups found without, "
        f"mean accuracy changes by {change:.4f}; this is invariance, no guarantee is tested"
    )


def _necessity(families: Families) -> str:
    frame = curves.measurements(families["cfl_fig8_congruent"])
    shares = [f"{criteria.share_of_rounds(frame, 0.1, ratio):.1%}" for ratio in (1, 4, 10)]
    return (
        "congruent clients: the norm criteria ask for a split in "
        f"{', '.join(shares)} of the rounds at ε₂ = 1, 4, 10 times ε₁"
    )


def _newcomers(state: pd.DataFrame, records: Mapping[str, list[dict[str, Any]]]) -> str:
    homes = ("cfl_fig9", "cfl_permuted")
    joined = [record for name in homes for record in records[name]]
    right = [home for record in joined for home in agreement.newcomers_at_home(record)]
    scores = [new[record["metric"]] for record in joined for new in record["newcomers"]]
    return (
        f"{sum(right)} of {len(right)} newcomers led to the leaf of their cluster; their accuracy "
        f"is {np.mean(scores):.3f}, that of the trained clients "
        f"{state['score'][list(homes)].mean():.3f}"
    )
