"""Measures of CFL's separation gap (Figs 6 and 7): runs with one group, a column per dataset."""

from typing import Literal

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from clustered_fl.claims.bounds import Measured
from clustered_fl.claims.evidence import Evidence
from clustered_fl.claims.judging import over_rounds
from clustered_fl.claims.names import Run
from clustered_fl.metrics.cfl import gap
from clustered_fl.metrics.cfl.gap import SIMILARITIES

Along = Literal["samples", "round"]
Similarity = Literal["update", "gradient"]


def _gaps(evidence: Evidence, of: list[str], along: Along) -> list[pd.DataFrame]:
    """Gaps of the runs, one table per column.

    Along samples: at the last round with gradients. Along rounds: of the run with most samples.
    """
    found = [gap.by_round(evidence.runs(*runs)) for runs in evidence.by_column(of).values()]
    if along == "samples":
        return [gap.at_last_gradient(each) for each in found]
    return [each[each["samples"] == each["samples"].max()] for each in found]


def _scores(
    evidence: Evidence, of: list[str], along: Along, similarity: Similarity = "update"
) -> pd.DataFrame:
    """Gap and correctness of runs in one column of a table, indexed by `along`."""
    (gaps,) = _gaps(evidence, of, along)
    return gaps[gaps["similarity"] == similarity].groupby(along)[["gap", "correct"]].mean()


def with_samples(evidence: Evidence, of: list[Run], samples: list[int]) -> Measured:
    """Gap of updates, and whether the bipartition is correct, for numbers of samples per client.

    Args:
        of: runs of one column of a table.
    """
    found = _scores(evidence, of, "samples").reindex(samples)
    found = found.rename(columns={"correct": "correct bipartition"})
    return {f"{key} at {n} samples": float(found[key][n]) for n in samples for key in found}


def lead_with_samples(evidence: Evidence, of: list[Run], samples: int) -> Measured:
    """Gap of weight updates less that of full gradients, for one number of samples per client.

    Args:
        of: runs of one column of a table.
    """
    (gaps,) = _gaps(evidence, of, "samples")
    table = gaps.pivot_table(index="samples", columns="similarity", values="gap")
    found = {name: float(table[name].get(samples, np.nan)) for name in SIMILARITIES}
    return {"lead in gap": found["update"] - found["gradient"]} | {
        SIMILARITIES[name]: gap for name, gap in found.items()
    }


def from_round(
    evidence: Evidence, of: list[Run], first: int, similarity: Similarity = "update"
) -> Measured:
    """Fractions of rounds with a positive gap and with a correct bipartition.

    Args:
        of: runs of one column of a table, of which the one with most samples per client is used.
        first: first round that is considered.
        similarity: of weight updates, or of full gradients.
    """
    found = _scores(evidence, of, "round", similarity).loc[first:]
    positive, correct = float((found["gap"] > 0).mean()), float(found["correct"].mean())
    return {"rounds with a positive gap": positive, "rounds with a correct bipartition": correct}


def lead(evidence: Evidence, of: list[Run], first: int, last: int | None = None) -> Measured:
    """Gap of weight updates less that of full gradients, where both are measured, and both gaps.

    Args:
        of: runs of one column of a table, of which the one with most samples per client is used.
        first: first round that is considered.
        last: last round that is considered; None for the last of the run.
    """
    (gaps,) = _gaps(evidence, of, "round")
    table = gaps.pivot_table(index="round", columns="similarity", values="gap")
    table = table.loc[first:last].dropna()
    means = {SIMILARITIES[name]: float(table[name].mean()) for name in SIMILARITIES}
    return {"lead in gap": over_rounds(table["update"] - table["gradient"])} | means


def growth(evidence: Evidence, of: list[Run], along: Along) -> Measured:
    """Least Spearman correlation of the gap with samples or rounds, over data and similarities."""
    shape = {"index": along, "columns": "similarity", "values": "gap"}
    tables = [gaps.pivot_table(**shape) for gaps in _gaps(evidence, of, along)]
    found = [spearmanr(t.index, t[name]).statistic for t in tables for name in SIMILARITIES]
    return {"smallest rank correlation": float(min(found))}


def delay(evidence: Evidence, of: list[Run], along: Along) -> Measured:
    """Largest delay, in samples or rounds, of the updates' positive gap after the gradients'."""
    delays = [gap.delay(gaps, along) for gaps in _gaps(evidence, of, along)]
    return {f"delay in {along.removesuffix('s')}s": max(delays)}
