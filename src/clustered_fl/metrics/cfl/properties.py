"""Measured evidence for the properties in CFL's Table II, as sentences.

The runs are those that the ledger lists for `cfl_table2`; numbers are means over their seeds.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from clustered_fl.metrics import agreement, curves, titles
from clustered_fl.metrics.cfl import criteria, gap
from clustered_fl.metrics.cfl.overview import overview
from clustered_fl.records import index

Records = Mapping[str, list[dict[str, Any]]]
"""Entry of the ledger -> records of its runs."""


def evidence(runs: pd.DataFrame) -> dict[str, str]:
    """One sentence per property, in the order of the paper's table, from an index of records.

    A run without seeds at this scale is skipped if others give the same evidence.
    """
    state = overview(runs).groupby("run")[["score", "groups", "agreement"]].mean()
    records = {name: index.loaded(own) for name, own in runs.groupby("entry")}
    ours, fedavg = records["cfl_permuted"][0], records["cfl_permuted_fedavg"][0]
    local, plain = (each["config"]["training"] for each in (ours, fedavg))
    equal = "the same local training as" if local == plain else "local training different from that"
    auto = {"CIFAR-10": "cfl_fig9_auto", "MNIST": "cfl_permuted_auto"}
    split = ["splits decided by the criteria, 4 true clusters"]
    split += [f"{data}: {_found(state, run)}" for data, run in auto.items() if run in state.index]
    counts = gap.certificates(curves.measurements(runs))
    frame = curves.measurements(index.chosen(runs, "run", "cfl_fig8_congruent"))
    shares = [f"{criteria.share_of_rounds(frame, 0.1, ratio):.1%}" for ratio in (1, 4, 10)]
    return {
        "non-convex objectives": _non_convex(state, records),
        "no change of the FedAvg protocol": (
            f"a client sends its weight update, {ours['parameters']:,} numbers a round (FedAvg: "
            f"{fedavg['parameters']:,}); groups come from these updates alone"
        ),
        "no major overhead for clients": (
            f"{equal} under FedAvg: {local['epochs']} epochs, batches of {local['batch_size']}"
        ),
        "number of clusters not needed": ". ".join(split),
        "theoretical guarantees": (
            f"the gap g was positive {counts['positive']:,} times (groups and rounds), and the "
            f"bipartition correct in {counts['correct']:,} of them; it was correct another "
            f"{counts['uncertified']:,} times although g was not positive"
        ),
        "formal privacy guarantees possible": _privacy(state, records),
        "clusters only if necessary": (
            "congruent clients: the norm criteria trigger a split in "
            f"{', '.join(shares[:-1])} and {shares[-1]} of the rounds at ε₂ = 1, 4 and 10 times ε₁"
        ),
        "varying client populations": _newcomers(state, records),
    }


def _found(state: pd.DataFrame, run: str) -> str:
    row = state.loc[run]
    plural = "" if row["groups"] == 1 else "s"
    return f"{row['groups']:.3g} group{plural}, agreement {row['agreement']:.2f}"


def _non_convex(state: pd.DataFrame, records: Records) -> str:
    score = state["score"].map("{:.3f}".format)
    sizes = [records[name][0]["parameters"] for name in ("cfl_fig9", "cfl_permuted")]
    return (
        f"CIFAR-10, {sizes[0]:,} parameters: {_found(state, 'cfl_fig9')}, "
        f"accuracy {score['cfl_fig9']}. MNIST, {sizes[1]:,} parameters: "
        f"{_found(state, 'cfl_permuted')}, accuracy {score['cfl_permuted']} against "
        f"{score['cfl_permuted_fedavg']} with FedAvg"
    )


def _privacy(state: pd.DataFrame, records: Records) -> str:
    pairs = zip(records["cfl_permuted"], records["cfl_permuted_hidden"], strict=True)
    equal = min(agreement.index(plain["groups"], hidden["groups"]) for plain, hidden in pairs)
    change = abs(state["score"]["cfl_permuted"] - state["score"]["cfl_permuted_hidden"])
    return (
        f"with a common secret permutation of the parameters: agreement {equal:.2f} with the "
        f"groups found without it, mean accuracy changes by {change:.4f}; this tests invariance, "
        "not a privacy guarantee"
    )


def _newcomers(state: pd.DataFrame, records: Records) -> str:
    parts = []
    for name in ("cfl_fig9", "cfl_permuted"):
        data = titles.dataset(records[name][0]["data"]["name"])
        right = [home for each in records[name] for home in agreement.newcomers_at_home(each)]
        scores = [new[each["metric"]] for each in records[name] for new in each["newcomers"]]
        parts.append(
            f"{data}: {sum(right)} of {len(right)} newcomers were routed to the leaf of their "
            f"cluster; their accuracy is {np.mean(scores):.3f}, that of the trained clients "
            f"{state['score'][name]:.3f}"
        )
    return ". ".join(parts)
