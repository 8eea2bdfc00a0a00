"""FLT's Theorem 1, eq. (2): decrease of the clustering error with the number of samples.

If noise moves one sample across the border between two labels with probability P = Q(q), the mean
of n samples crosses it with probability Q(sqrt(n) q) <= exp(-n q^2 / 2). Equation (2) prints
exp(-(n q)^2 / 2), as if noise decreased with n; we have not seen the supplement with its proof.
Where the interpretation is open, the printed bound is tested in the most lenient one, the fraction
of wrongly assigned labels, and the corrected bound in the strictest, the probability that any label
of any client is wrong.
"""

from collections.abc import Sequence
from itertools import product
from typing import Annotated

import numpy as np
import pandas as pd
from pydantic import PositiveInt
from scipy.optimize import brentq
from scipy.special import betaincinv, log_ndtr, ndtri

from clustered_fl.randomness import generator
from clustered_fl.theory.ranges import Ascending, ErrorRate, Listed, TwoOrMore
from clustered_fl.theory.search import Check, counted
from clustered_fl.theory.tables import leaves

# Confidence of intervals around simulated fractions; high, because hundreds are compared.
CONFIDENCE = 0.9999
# Quadrature for means over a normal variable.
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(100)
# Error of the two labels that an uneven encoder hardly separates.
CLOSE_ERROR = 0.3
# Replaces zero in logarithms.
TINY = 1e-300


@leaves("single", "mixture", "uneven", "checks")
def clustering_error(
    seed: int,
    *,
    trials: PositiveInt = 20_000,
    samples_max: PositiveInt = 64,
    error_rates: Listed[ErrorRate] = (0.01, 0.05, 0.1, 0.2, 0.3, 0.4),
    clients: PositiveInt = 20,
    federations: PositiveInt = 200,
    mixtures: Listed[Annotated[tuple[TwoOrMore, TwoOrMore], Ascending]] = ((2, 2), (10, 16)),
    mixture_error_rates: Listed[ErrorRate] = (0.1, 0.3),
    mixture_samples: Listed[PositiveInt] = (1, 2, 4, 8, 16, 32, 64),
) -> dict[str, pd.DataFrame]:
    """Compare the error of clustering with the printed and with the corrected bound.

    Args:
        trials: simulated means of the simplest case, M = L = e = 1.
        samples_max: largest n of the simplest case and of the uneven encoder.
        error_rates: P of the simplest case, the classification error of one sample.
        clients, federations: M, and how many federations are simulated per setting.
        mixtures: their L and e, with e at least L.
        mixture_error_rates, mixture_samples: their P and n.
    Returns: see `single_mean`, `mixture`, `uneven_labels`; checks: see `Check`.
    """
    single = single_mean(generator(seed, "single_mean"), trials, samples_max, error_rates)
    settings = product(mixtures, mixture_error_rates, mixture_samples)
    mixed = pd.DataFrame(
        mixture(generator(seed, "mixture", number), federations, clients, *setting)
        for number, setting in enumerate(settings)
    )
    uneven = uneven_labels(samples_max, clients, *mixtures[-1])
    checks = pd.DataFrame(_checks(single, mixed, uneven))
    return {"single": single, "mixture": mixed, "uneven": uneven, "checks": checks}


def border_distance(error_rate: np.ndarray | float) -> np.ndarray | float:
    """`Q^-1`: distance of a border, in standard deviations, that noise crosses at this rate."""
    return -ndtri(error_rate)


def log_printed(samples: np.ndarray | int, error_rate: float) -> np.ndarray:
    """Logarithm of one term of FLT eq. (2), n and P as printed."""
    return -((samples * border_distance(error_rate)) ** 2) / 2


def log_corrected(samples: np.ndarray | int, error_rate: float) -> np.ndarray:
    """Logarithm of the term with noise that decreases with the root of n."""
    return -samples * border_distance(error_rate) ** 2 / 2


def log_error(samples: np.ndarray | int, error_rate: float) -> np.ndarray:
    """Logarithm of `Q(sqrt(n) Q^-1(P))`: the mean of n samples crosses the border."""
    return log_ndtr(-np.sqrt(samples) * border_distance(error_rate))


def single_mean(
    random: np.random.Generator, trials: int, samples_max: int, error_rates: Sequence[float]
) -> pd.DataFrame:
    """The simplest case, M = L = e = 1: the mean of n samples against one border.

    Returns: error_rate (P), samples (n), exact, simulated (share of `trials`), low, high (its
        interval of confidence), printed, corrected (the bounds), log10_excess (exact over printed).
    """
    samples = np.arange(1, samples_max + 1)
    means = random.standard_normal((trials, samples_max)).cumsum(axis=1) / samples
    parts = []
    for rate in error_rates:
        wrong = (means > border_distance(rate)).sum(axis=0)
        low, high = interval(wrong, trials)
        exact, printed = log_error(samples, rate), log_printed(samples, rate)
        part = {"error_rate": rate, "samples": samples, "exact": np.exp(exact)}
        part |= {"simulated": wrong / trials, "low": low, "high": high}
        part |= {"printed": np.exp(printed), "corrected": np.exp(log_corrected(samples, rate))}
        parts.append(pd.DataFrame(part | {"log10_excess": (exact - printed) / np.log(10)}))
    return pd.concat(parts, ignore_index=True)


def interval(wrong: np.ndarray | int, trials: int) -> tuple[np.ndarray, np.ndarray]:
    """Exact binomial interval (Clopper, Pearson) around `wrong` of `trials`, see `CONFIDENCE`."""
    wrong, tail = np.asarray(wrong), (1 - CONFIDENCE) / 2
    low = betaincinv(np.maximum(wrong, 1), trials - wrong + 1, tail)
    high = betaincinv(wrong + 1, np.maximum(trials - wrong, 1), 1 - tail)
    return np.where(wrong == 0, 0.0, low), np.where(wrong == trials, 1.0, high)


def confusion(distance: float, labels: int) -> float:
    """How often unit noise moves a point of one label nearer to the centre of another.

    Each centre is `distance` from the origin along its own axis. Labels are then equally hard: the
    error is the mean of 1 - Phi(z + distance)^(L-1) over normal z.
    """
    missed = -np.expm1((labels - 1) * log_ndtr(NODES + distance))
    return float(WEIGHTS @ missed / WEIGHTS.sum())


def centre_distance(error_rate: float, labels: int) -> float:
    """The distance at which `confusion` is `error_rate`."""
    return float(brentq(lambda distance: confusion(distance, labels) - error_rate, 0.0, 40.0))


def mixture(
    random: np.random.Generator,
    federations: int,
    clients: int,
    shape: tuple[int, int],
    error_rate: float,
    samples: int,
) -> dict[str, float]:
    """Simulate clients whose labels are Gaussians around equally distant centres.

    The mean of a client's n samples of a label is assigned to the nearest centre. `shape` is L and
    e, the numbers of labels and dimensions; a single sample is wrong with P = `error_rate`.
    Returns: a table row, among others exact and simulated (share of labels assigned wrongly),
        exact_any and simulated_any (probability that any label of any client is).
    """
    labels, dimension = shape
    distance = centre_distance(error_rate, labels)
    noise = random.standard_normal((federations, clients, labels, dimension)) / np.sqrt(samples)
    # All centres are equally long: the nearest is the one with the largest coordinate of its own.
    means = noise[..., :labels] + distance * np.eye(labels)
    wrong = means.argmax(axis=3) != np.arange(labels)
    any_wrong = wrong.any(axis=(1, 2))
    exact = confusion(distance * np.sqrt(samples), labels)
    low, high = map(float, interval(wrong.sum(), wrong.size))
    low_any = float(interval(any_wrong.sum(), federations)[0])
    terms = clients * labels * dimension
    row = {"clients": clients, "labels": labels, "dimension": dimension}
    row |= {"error_rate": error_rate, "samples": samples, "exact": exact}
    row |= {"simulated": wrong.mean(), "low": low, "high": high}
    row |= {"exact_any": _any(exact, clients * labels), "simulated_any": any_wrong.mean()}
    row |= {"low_any": low_any, "printed": terms * np.exp(log_printed(samples, error_rate))}
    return row | {"corrected": terms * np.exp(log_corrected(samples, error_rate))}


def _any(error: np.ndarray | float, chances: int) -> np.ndarray | float:
    """Probability of at least one error in independent chances."""
    return -np.expm1(chances * np.log1p(-error))


def uneven_labels(samples_max: int, clients: int, labels: int, dimension: int) -> pd.DataFrame:
    """An encoder that confuses two labels and no others: which P does the bound need?

    Returns: samples, exact (share of labels assigned wrongly), exact_any, average (corrected bound
        with the average P, 2 / L of that of the two labels), worst (with the P of the two labels).
    """
    samples = np.arange(1, samples_max + 1)
    close = np.exp(log_error(samples, CLOSE_ERROR))
    terms = clients * labels * dimension
    average = terms * np.exp(log_corrected(samples, CLOSE_ERROR * 2 / labels))
    worst = terms * np.exp(log_corrected(samples, CLOSE_ERROR))
    table = {"samples": samples, "exact": close * 2 / labels, "exact_any": _any(close, 2 * clients)}
    return pd.DataFrame(table | {"average": average, "worst": worst})


def _checks(single: pd.DataFrame, mixed: pd.DataFrame, uneven: pd.DataFrame) -> list[Check]:
    """Exact errors against the bounds, and simulated ones, whose whole interval must lie above."""
    beaten = single["log10_excess"] > 0
    holding = single.loc[~beaten, "samples"]
    enough = holding.max() + 1 if len(holding) else 1.0
    name = "samples from which on every error rate contradicts it"
    power = "false: noise falls with the root of n, so the exponent must grow with n, not n^2"
    first = counted("theorem_1_printed", "eq. (2), M = L = e = 1", beaten, enough, name, power)
    fixed, simulated = "eq. (2) with n for n^2", "eq. (2), simulated"
    both = pd.concat([single, mixed])
    low_any = pd.concat([single["low"], mixed["low_any"]])
    resolved = "false wherever the simulation can resolve the error"
    worst = "false: P must be the error of the labels that are confused most, not the average"
    pairs = {
        "theorem_1_corrected": (fixed, single["exact"], single["corrected"], "holds"),
        "theorem_1_printed_simulated": (simulated, both["low"], both["printed"], resolved),
        "theorem_1_corrected_simulated": (simulated, low_any, both["corrected"], "holds"),
        "theorem_1_average_error": (fixed, uneven["exact"], uneven["average"], worst),
    }
    return [first, *(_compared(name, *pair) for name, pair in pairs.items())]


def _compared(name: str, source: str, error: pd.Series, bound: pd.Series, note: str) -> Check:
    logs = np.log10(np.maximum(error, TINY)) - np.log10(np.maximum(bound, TINY))
    value_name = "largest log10 of error over bound"
    return counted(name, source, error > bound, logs.max(), value_name, note)
