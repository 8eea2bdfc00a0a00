"""FLT's Theorem 1: how the error of clustering clients falls with their number of samples.

A client describes each of its labels by the mean of the embeddings of n samples. If noise carries
one sample over the border between two labels with probability P = Q(q), a mean, whose noise is
smaller by sqrt(n), crosses it with probability Q(sqrt(n) q) <= exp(-n q^2 / 2). Equation (2) of the
paper prints exp(-(n q)^2 / 2), as if noise fell with n; the proof is in a supplement that we have
not seen. Where the paper leaves a reading open, the printed bound is tried in the kindest one, the
share of labels that are assigned wrongly, and the corrected one in the strictest, the probability
that any label of any client is. Source: FLT Theorem 1, eq. (2).
"""

from collections.abc import Sequence
from itertools import product

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import betaincinv, log_ndtr, ndtri

from clustered_fl.randomness import generator
from clustered_fl.theory.ranges import require_at_least, require_between
from clustered_fl.theory.search import Check, columns

# Of an interval around a simulated share; so high because hundreds of them are compared.
CONFIDENCE = 0.9999
# For the mean over one normal variable.
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(100)
# Error of the two labels that an uneven encoder hardly tells apart.
CLOSE_ERROR = 0.3
# Stands for zero in logarithms.
TINY = 1e-300


def clustering_error(
    seed: int,
    *,
    trials: int = 20_000,
    samples_max: int = 64,
    error_rates: Sequence[float] = (0.01, 0.05, 0.1, 0.2, 0.3, 0.4),
    clients: int = 20,
    federations: int = 200,
    mixtures: Sequence[tuple[int, int]] = ((2, 2), (10, 16)),
    mixture_error_rates: Sequence[float] = (0.1, 0.3),
    mixture_samples: Sequence[int] = (1, 2, 4, 8, 16, 32, 64),
) -> dict[str, pd.DataFrame]:
    """Compare the error of clustering with the printed and with the corrected bound.

    Args:
        trials: simulated means of the simplest case, M = L = e = 1.
        samples_max: largest n of the simplest case and of the uneven encoder.
        error_rates: P of the simplest case, the classification error of one sample.
        clients: M of the simulated federations.
        federations: how many are simulated per setting.
        mixtures: their L and e, with e at least L.
        mixture_error_rates, mixture_samples: their P and n.
    Returns:
        single: see `single_mean`.
        mixture: see `mixture`.
        uneven: see `uneven_labels`.
        checks: check, source, trials, violations, value, value_name, note.
    Raises:
        InputError: for settings out of range.
    """
    require_at_least(1, trials=trials, samples_max=samples_max, clients=clients)
    require_at_least(1, federations=federations, mixture_samples=min(mixture_samples))
    for rate in (*error_rates, *mixture_error_rates):
        require_between(0, 0.5, error_rate=rate)
    for labels, dimension in mixtures:
        require_at_least(2, labels=labels)
        require_at_least(labels, dimension=dimension)
    single = single_mean(generator(seed, "single_mean"), trials, samples_max, error_rates)
    settings = product(mixtures, mixture_error_rates, mixture_samples)
    mixed = pd.DataFrame(
        mixture(generator(seed, "mixture", number), federations, clients, *setting)
        for number, setting in enumerate(settings)
    )
    uneven = uneven_labels(samples_max, clients, *mixtures[-1])
    checks = [*_exact_checks(single), *_simulated_checks(single, mixed), _uneven_check(uneven)]
    return {
        "single": single,
        "mixture": mixed,
        "uneven": uneven,
        "checks": pd.DataFrame(columns(checks)),
    }


def border_distance(error_rate: np.ndarray | float) -> np.ndarray | float:
    """`Q^-1`: how far the border is, in standard deviations, if noise crosses it so often."""
    return -ndtri(error_rate)


def log_printed(samples: np.ndarray | int, error_rate: float) -> np.ndarray:
    """Logarithm of one term of FLT eq. (2), n and P as printed."""
    return -((samples * border_distance(error_rate)) ** 2) / 2


def log_corrected(samples: np.ndarray | int, error_rate: float) -> np.ndarray:
    """Logarithm of the term with noise that falls with the root of n."""
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

    The centres are `distance` from the origin along one axis each, so that all labels are equally
    hard: the error is the mean of 1 - Phi(z + distance)^(L-1) over normal z.
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

    Every client has `samples` of every label; their mean is assigned to the nearest centre. Means
    of n samples are drawn as such, with 1/n of the variance.

    Args:
        shape: L and e, the number of labels and of dimensions.
        error_rate: P, with which a sample is nearer to another centre than to its own.
    Returns: clients, labels, dimension, error_rate, samples, exact (share of labels assigned
        wrongly), simulated, low, high, exact_any (probability that any label of any client is),
        simulated_any, low_any, printed, corrected (the sums over M, L and e).
    """
    labels, dimension = shape
    distance = centre_distance(error_rate, labels)
    noise = random.standard_normal((federations, clients, labels, dimension)) / np.sqrt(samples)
    # All centres are equally long: the nearest is the one with the largest coordinate of its own.
    means = noise[..., :labels] + distance * np.eye(labels)
    wrong = means.argmax(axis=3) != np.arange(labels)
    exact = confusion(distance * np.sqrt(samples), labels)
    any_wrong = wrong.any(axis=(1, 2)).sum()
    low, high = interval(wrong.sum(), wrong.size)
    terms = clients * labels * dimension
    return {
        "clients": clients,
        "labels": labels,
        "dimension": dimension,
        "error_rate": error_rate,
        "samples": samples,
        "exact": exact,
        "simulated": float(wrong.mean()),
        "low": float(low),
        "high": float(high),
        "exact_any": _any(exact, clients * labels),
        "simulated_any": float(any_wrong / federations),
        "low_any": float(interval(any_wrong, federations)[0]),
        "printed": terms * float(np.exp(log_printed(samples, error_rate))),
        "corrected": terms * float(np.exp(log_corrected(samples, error_rate))),
    }


def _any(error: np.ndarray | float, chances: int) -> np.ndarray | float:
    """Probability of at least one error in independent chances."""
    return -np.expm1(chances * np.log1p(-error))


def uneven_labels(samples_max: int, clients: int, labels: int, dimension: int) -> pd.DataFrame:
    """An encoder that confuses two labels and no others: which P does the bound need?

    Over all labels the classification error is 2 / L of that of the two.

    Returns: samples, exact (share of labels assigned wrongly), exact_any, average (corrected bound
        with the average P), worst (with the P of the two labels).
    """
    samples = np.arange(1, samples_max + 1)
    close = np.exp(log_error(samples, CLOSE_ERROR))
    terms = clients * labels * dimension
    average = np.exp(log_corrected(samples, CLOSE_ERROR * 2 / labels))
    return pd.DataFrame(
        {
            "samples": samples,
            "exact": close * 2 / labels,
            "exact_any": _any(close, 2 * clients),
            "average": terms * average,
            "worst": terms * np.exp(log_corrected(samples, CLOSE_ERROR)),
        }
    )


def _exact_checks(single: pd.DataFrame) -> list[Check]:
    beaten = single["log10_excess"] > 0
    holding = single.loc[~beaten, "samples"]
    enough = float(holding.max() + 1) if len(holding) else 1.0
    from_there = "samples from which on every error rate contradicts it"
    note = "false: noise falls with the root of n, so the exponent must grow with n, not n^2"
    corrected = (single["exact"], single["corrected"])
    return [
        _check("theorem_1_printed", "eq. (2), M = L = e = 1", beaten, enough, from_there, note),
        _compared("theorem_1_corrected", "eq. (2) with n for n^2", [corrected], "holds"),
    ]


def _simulated_checks(single: pd.DataFrame, mixed: pd.DataFrame) -> list[Check]:
    """Simulated errors whose whole interval lies above the bound: of a share, and of any error."""
    printed = [(part["low"], part["printed"]) for part in (single, mixed)]
    corrected = [(single["low"], single["corrected"]), (mixed["low_any"], mixed["corrected"])]
    source, note = "eq. (2), simulated", "false wherever the simulation can resolve the error"
    return [
        _compared("theorem_1_printed_simulated", source, printed, note),
        _compared("theorem_1_corrected_simulated", source, corrected, "holds"),
    ]


def _uneven_check(uneven: pd.DataFrame) -> Check:
    pair = (uneven["exact"], uneven["average"])
    note = "false: P must be the error of the labels that are confused most, not the average"
    return _compared("theorem_1_average_error", "eq. (2) with n for n^2", [pair], note)


def _compared(name: str, source: str, pairs: list[tuple[pd.Series, pd.Series]], note: str) -> Check:
    """One row for pairs of errors and bounds on them."""
    error, bound = (pd.concat(part) for part in zip(*pairs, strict=True))
    logs = np.log10(np.maximum(error, TINY)) - np.log10(np.maximum(bound, TINY))
    value_name = "largest log10 of error over bound"
    return _check(name, source, error > bound, float(logs.max()), value_name, note)


def _check(
    name: str, source: str, contradicts: pd.Series, value: float, value_name: str, note: str
) -> Check:
    violations = int(contradicts.sum())
    return Check(name, source, len(contradicts), violations, value, value_name, note)
