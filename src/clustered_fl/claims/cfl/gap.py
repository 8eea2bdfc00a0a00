"""Separation gap against data and rounds (CFL Figs 6 and 7)."""

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from clustered_fl.claims.cfl.registry import claim
from clustered_fl.claims.evidence import Evidence
from clustered_fl.claims.predicates import Measured
from clustered_fl.metrics import gap
from clustered_fl.metrics.gap import SIMILARITIES

NEAR_ZERO = 0.1


def gaps_by_samples(evidence: Evidence, dataset: str) -> pd.DataFrame:
    """Gap after the last round at which both similarities were measured.

    Returns:
        Indexed by samples per client, ascending; columns update and gradient.
    """
    families = (f"cfl_{dataset}_samples", f"cfl_{dataset}_rounds")
    gaps = gap.at_last_gradient(gap.by_round(evidence.folders(*families)))
    return gaps.pivot_table(index="samples", columns="similarity", values="gap")


def _value(gaps: pd.DataFrame, samples: int) -> float:
    return float(gaps["update"].get(samples, np.nan))


@claim("CFL-F6-a", {"gap at 20": "> 0"})
def mnist_needs_20_samples(evidence: Evidence) -> Measured:
    """Weight-update gap with 20 samples per client on MNIST."""
    return {"gap at 20": _value(gaps_by_samples(evidence, "mnist"), 20)}


@claim("CFL-F6-b", {"gap at 100": "< 0", "gap at 500": "> 0"})
def cifar_needs_500_samples(evidence: Evidence) -> Measured:
    """Weight-update gap with 100 and 500 samples per client on CIFAR-10."""
    gaps = gaps_by_samples(evidence, "cifar")
    return {"gap at 100": _value(gaps, 100), "gap at 500": _value(gaps, 500)}


@claim("CFL-F6-c", {"smallest rank correlation": ">= 0.9"})
def gap_grows_with_samples(evidence: Evidence) -> Measured:
    """Smallest Spearman correlation of gap and samples over the four curves."""
    tables = [gaps_by_samples(evidence, dataset) for dataset in ("mnist", "cifar")]
    found = [spearmanr(t.index, t[name]).statistic for t in tables for name in SIMILARITIES]
    return {"smallest rank correlation": float(min(found))}


@claim("CFL-F6-d", {"worst advantage": ">= 0", "extra samples": "<= 0"})
def updates_separate_with_less_data(evidence: Evidence) -> Measured:
    """Advantage of weight updates over gradients where either gap is near zero.

    "extra samples" is how many more samples weight updates need for a positive gap.
    """
    advantage, extra = [], []
    for dataset in ("mnist", "cifar"):
        gaps = gaps_by_samples(evidence, dataset)
        near = gaps[(gaps.abs() < NEAR_ZERO).any(axis=1)]
        advantage += (near["update"] - near["gradient"]).tolist()
        extra.append(_later(gaps))
    return {"worst advantage": min(advantage, default=0.0), "extra samples": max(extra)}


def _later(gaps: pd.DataFrame) -> float:
    """By how much the first positive gap of updates comes after that of gradients."""
    first = {name: curve.index[curve > 0].min() for name, curve in gaps.items()}
    update, gradient = (float(np.nan_to_num(first[name], nan=np.inf)) for name in SIMILARITIES)
    return 0.0 if update == gradient else update - gradient


def gap_curves(evidence: Evidence, *families: str) -> pd.DataFrame:
    """Weight-update gap of every run of these families (columns) by round."""
    curves = [run.group_metric("gap_update") for name in families for run in evidence.members(name)]
    return pd.concat(curves, axis=1)


@claim("CFL-F6-e", {"largest gap": "> 0"})
def other_settings_with_20_samples(evidence: Evidence) -> Measured:
    """Largest final gap over learning rates and networks, 20 samples per client, MNIST."""
    curves = gap_curves(evidence, "cfl_mnist_20_rates", "cfl_mnist_20_wide")
    return {"largest gap": float(curves.iloc[-1].max()), "settings": float(curves.shape[1])}


@claim("CFL-F6-f", {"smallest advantage": "> 0"})
def smaller_rates_on_cifar(evidence: Evidence) -> Measured:
    """Smallest lead of the weight-update gap over the gradient gap at the end, and both gaps."""
    runs = evidence.members("cfl_cifar_500_rates")
    gaps = [[run.group_metric(f"gap_{name}").iloc[-1] for name in SIMILARITIES] for run in runs]
    advantage = min(update - gradient for update, gradient in gaps)
    return {"smallest advantage": float(advantage), "largest gap": float(max(gaps)[0])}


@claim("CFL-F7-e", {"largest of the smallest gaps": "> 0"})
def other_settings_after_10_rounds(evidence: Evidence) -> Measured:
    """The best setting's smallest gap from round 10 on, 100 samples per client, MNIST."""
    curves = gap_curves(evidence, "cfl_mnist_100_rates", "cfl_mnist_100_wide")
    smallest = curves.loc[10:].min()
    return {
        "largest of the smallest gaps": float(smallest.max()),
        "settings": float(curves.shape[1]),
    }


def gaps_by_round(evidence: Evidence, dataset: str) -> pd.DataFrame:
    """Gap after each of the first rounds: indexed by round from 1, columns update and gradient."""
    gaps = gap.by_round(evidence.folders(f"cfl_{dataset}_rounds"))
    return gaps.pivot_table(index="round", columns="similarity", values="gap")


@claim("CFL-F7-a", {"smallest gap from round 10": "> 0"})
def mnist_separates_after_10_rounds(evidence: Evidence) -> Measured:
    """Smallest weight-update gap from round 10 on, MNIST."""
    return {"smallest gap from round 10": gaps_by_round(evidence, "mnist")["update"].loc[10:].min()}


@claim("CFL-F7-b", {"smallest gap from round 10": "> 0"})
def cifar_separates_after_10_rounds(evidence: Evidence) -> Measured:
    """Smallest weight-update gap from round 10 on, CIFAR-10."""
    return {"smallest gap from round 10": gaps_by_round(evidence, "cifar")["update"].loc[10:].min()}


@claim("CFL-F7-c", {"smallest rank correlation": ">= 0.8"})
def gap_grows_with_rounds(evidence: Evidence) -> Measured:
    """Smallest Spearman correlation of gap and round over the four curves."""
    tables = [gaps_by_round(evidence, dataset) for dataset in ("mnist", "cifar")]
    found = [spearmanr(t.index, t[name]).statistic for t in tables for name in SIMILARITIES]
    return {"smallest rank correlation": float(min(found))}


@claim("CFL-F7-d", {"rounds later": "<= 0"})
def updates_separate_no_later(evidence: Evidence) -> Measured:
    """By how many rounds weight updates reach a positive gap later than gradients, at worst."""
    late = [_later(gaps_by_round(evidence, dataset)) for dataset in ("mnist", "cifar")]
    return {"rounds later": max(late)}
