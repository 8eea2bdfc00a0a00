"""Measures of a run's protocol: stopping, splits and traffic."""

import numpy as np

from clustered_fl.claims.bounds import Measured
from clustered_fl.claims.evidence import Evidence
from clustered_fl.claims.names import Run
from clustered_fl.metrics.cfl.gap import by_round


def first_stop(evidence: Evidence, of: Run, eps_1: float) -> Measured:
    """Round at which CFL's Algorithm 2 stops a run with one group, by criterion (30).

    Args:
        eps_1: as a fraction of the largest norm of a mean update so far.
    Returns: the first such round, infinity if there is none, and the least fraction.
    """
    norms = evidence.run(of).group_metric("mean_update_norm")
    share = norms / norms.cummax()
    below = share.index[share < eps_1]
    first = float(below[0]) if len(below) else np.inf
    return {"first stationary round": first, "smallest norm over largest": float(share.min())}


def splits(evidence: Evidence, of: Run) -> Measured:
    """Number of splits of a run, and its excess over the K - 1 that K true groups need."""
    run = evidence.run(of)
    made, needed = len(run.splits()), len(set(run.true_groups.tolist())) - 1
    return {"splits": float(made), "excess splits": float(made - needed)}


def sent(evidence: Evidence, of: Run, to: Run) -> Measured:
    """Ratio of updates sent per round to those of another run, and models per split.

    Returns: "updates per round" (largest ratio over common rounds), "models per split" (number of
        different models that the server sends at the end, minus one, over the number of splits; NaN
        without splits).
    """
    runs = [evidence.run(name) for name in (of, to)]
    losses = [run.frame[run.frame["metric"] == "loss"] for run in runs]
    ours, theirs = (each.groupby("round").size() for each in losses)
    split = len(runs[0].splits())
    more = len(set(runs[0].groups.tolist())) - 1
    per_split = more / split if split else float("nan")
    return {"updates per round": float((ours / theirs).max()), "models per split": float(per_split)}


def updates_for_gradients(evidence: Evidence, of: list[Run], first: int) -> Measured:
    """Distances between cosines of updates and of gradients, means over rounds (eqs 37 to 39).

    Args:
        of: runs of one column of a table, each with one group.
        first: first round that is considered.
    Returns: mean distance of the least cosine within true groups, of the largest across the best
        bipartition, and the larger of the two.
    """
    found = by_round(evidence.runs(*of), ("intra", "cut"))
    most = found[(found["samples"] == found["samples"].max()) & (found["round"] >= first)]
    table = most.pivot_table(index="round", columns="similarity", values=["intra", "cut"]).dropna()
    apart = (table.xs("update", axis=1, level=1) - table.xs("gradient", axis=1, level=1)).abs()
    means = {
        "within clusters": float(apart["intra"].mean()),
        "across the cut": float(apart["cut"].mean()),
    }
    return {"distance of cosines": max(means.values())} | means
