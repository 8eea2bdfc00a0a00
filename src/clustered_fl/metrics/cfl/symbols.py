"""Values of the CFL paper's symbols in one run (CFL Table I)."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from clustered_fl.metrics import curves, titles


def values(record: Mapping[str, Any], rounds: pd.DataFrame) -> dict[str, str]:
    """Symbol -> its value in a run of CFL that splits by a schedule, in the order of the table."""
    truth, groups = record["true_groups"], record["groups"]
    sizes = ", ".join(str(groups.count(group)) for group in sorted(set(groups)))
    # Without a number in the ledger, clients share the training samples equally.
    share = record["data"]["train_rows"] // len(truth)
    samples = record["config"]["federation"].get("samples") or share
    data = titles.dataset(record["data"]["name"])
    alpha = "kept at splits only, and there was none"
    if similarity := record["tree"][0]["similarity"]:
        alpha = "{:.2f} to {:.2f} at the first split".format(*similarity)
    return {
        "M": f"{len(truth)}",
        "K ≤ M": f"{len(set(truth))}",
        "θ ∈ Θ": titles.network(record["config"]["model"]["name"]),
        "d": f"{record['parameters']:,}",
        "φₖ(x, y)": f"{data}, labels permuted in {len(set(truth))} ways",
        "Rₖ(θ)": "unknown; estimated by the test score",
        "Dᵢ": f"{samples:,} samples each",
        "rᵢ(θ)": f"{curves.final(rounds, 'loss').mean():.3f} on average in the last round",
        "αᵢⱼ ∈ [−1, 1]": alpha,
        **_thresholds(record, rounds),
        "c ∈ C": f"{len(set(groups))} group{'s' * (len(set(groups)) > 1)} of {sizes} clients",
    }


def _thresholds(record: Mapping[str, Any], rounds: pd.DataFrame) -> dict[str, str]:
    """Thresholds recommended in section V-B, and the bound that accepts all splits of this run."""
    norms = rounds[(rounds["metric"] == "mean_update_norm") & (rounds["member"] == 0)]
    eps_1 = norms["value"].max() / 10
    cuts = [node["cut_similarity"] for node in record["tree"] if node["children"]]
    bound = np.sqrt((1 - max(cuts)) / 2) if cuts else None
    gamma = f"; below {bound:.2f} it accepts all splits of the run" if cuts else ""
    return {
        "ε₁ > 0": f"not used; a tenth of the largest mean update: {eps_1:.3g}",
        "ε₂ > 0": f"not used; ε₁ to 10 ε₁: {eps_1:.3g} to {10 * eps_1:.3g}",
        "γₘₐₓ ∈ [0, 1]": f"not used{gamma}",
    }
