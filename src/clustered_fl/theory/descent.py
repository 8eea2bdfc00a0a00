"""FLT's Theorem 2: does a round of FLT descend as eq. (3) promises?

What we read where the paper is silent (its proof is in a supplement that we have not seen):

- F(W) is the sum of the clients' costs F_i(w_i), because every client steps along the gradient of
  its own cost (Algorithm 3, line 9). L_W, its smoothness, is the largest of the F_i.
- A round is one full step of every client, then averaging: w_i <- sum_j A_ij (w_j - eta grad F_j)
  with A the row-normalised relatedness matrix (line 17 with the weights that sum to one).
- The norm of I - A is the spectral one, the smallest, which makes the promise strongest.
- Eq. (3) sums over i a quantity that does not depend on i, |W^t - W^(t-1)|^2. We read client i's
  part of it, so that the sum over i is the square over the whole matrix; taken literally the left
  side is M times that (`theorem_2_printed_sum`).
- The left side counts the step from W^0 to W^1, the right side starts from F(W^1). We start both
  from W^0; taken literally (`theorem_2_printed_start`) one round suffices against it, for T = 1
  makes the right side zero.

In this reading the theorem is true for disjoint groups and one common start: A is then a
projection and keeps W in its range, so that a step is D = -eta grad F A with <grad F, D> =
-|D|^2 / eta, and F falls by at least (1/eta - L/2) |D|^2, more than twice the bracket of eq. (3).
For overlapping relatedness (Case I), whose A is no projection, and for unequal starts, averaging
moves the models by itself and can raise F. Source: FLT Theorem 2, eq. (3), Algorithm 3.
"""

from collections.abc import Sequence
from itertools import product

import numpy as np
import pandas as pd

from clustered_fl.randomness import generator
from clustered_fl.theory.quadratics import (
    CASES,
    Case,
    descend,
    first_models,
    quadratics,
    relatedness,
    row_normalised,
)
from clustered_fl.theory.ranges import require_at_least, require_between
from clustered_fl.theory.search import ROUNDING, Check, columns

# A squared movement that is nothing but rounding.
TINY = 1e-15


def descent(
    seed: int,
    *,
    federations: int = 100,
    shapes: Sequence[tuple[int, int]] = ((4, 1), (4, 2), (10, 1), (10, 5)),
    groups: int = 2,
    rounds: int = 50,
    star_clients: int = 5,
    star_rounds: int = 500,
    star_step: float = 0.02,
) -> dict[str, pd.DataFrame]:
    """Compare both sides of eq. (3) on random quadratic costs.

    Args:
        federations: per case and shape.
        shapes: numbers of clients M and of parameters d.
        groups: of clients.
        rounds: largest T.
        star_clients, star_rounds, star_step: of the counterexample, see `star`.
    Returns:
        federations: see `compared`, with the columns case, clients, dimension in front.
        star: see `star`.
        checks: check, source, trials, violations, value, value_name, note.
    Raises:
        InputError: for settings out of range.
    """
    require_at_least(1, federations=federations, rounds=rounds, star_rounds=star_rounds)
    require_at_least(1, groups=groups, dimension=min(dimension for _, dimension in shapes))
    require_at_least(groups, clients=min(clients for clients, _ in shapes))
    require_at_least(3, star_clients=star_clients)
    require_between(0, 1, star_step=star_step)
    parts = []
    for case, (clients, dimension) in product(CASES, shapes):
        random = generator(seed, f"descent {case}", clients, dimension)
        table = compared(random, CASES[case], federations, clients, dimension, groups, rounds)
        named = {"case": case, "clients": clients, "dimension": dimension}
        parts.append(pd.DataFrame(named, index=table.index).join(table))
    table = pd.concat(parts, ignore_index=True)
    example = star(star_clients, star_rounds, star_step)
    checks = pd.DataFrame(columns(_checks(table, example)))
    return {"federations": table, "star": example, "checks": checks}


def movement(averaging: np.ndarray) -> np.ndarray:
    """Spectral norm of I - A [..]."""
    return np.linalg.norm(np.eye(averaging.shape[-1]) - averaging, ord=2, axis=(-2, -1))


def bracket(step: np.ndarray, smoothness: np.ndarray, moving: np.ndarray) -> np.ndarray:
    """The denominator of eq. (3); `moving` is the norm of I - A."""
    return 1 / (2 * step) - smoothness / 2 - step / 2 * (smoothness * moving) ** 2


def largest_step(smoothness: np.ndarray, moving: np.ndarray) -> np.ndarray:
    """Step size at which the bracket is zero: 1 / L without averaging, 0.618 / L for groups."""
    return 2 / (1 + np.sqrt(1 + 4 * moving**2)) / smoothness


def compared(
    random: np.random.Generator,
    case: Case,
    federations: int,
    clients: int,
    dimension: int,
    groups: int,
    rounds: int,
) -> pd.DataFrame:
    """Both sides of eq. (3) after some number of rounds, one row per federation.

    Returns: rounds (T), step (in units of the largest admissible), left, right (our reading),
        left_printed (M times as large), right_printed (from F(W^1) on).
    """
    group = np.arange(clients) % groups
    costs = quadratics(random, federations, group, dimension)
    averaging = row_normalised(relatedness(random, case.averaging, federations, group))
    models = first_models(random, case.start, costs)
    smoothness, moving = costs.smoothness(), movement(averaging)
    share = random.uniform(*case.steps, federations)
    step = share * largest_step(smoothness, moving)
    path = descend(costs, averaging, models, step, rounds)
    # Few rounds are as telling as many.
    last = np.exp(random.uniform(0, np.log(rounds + 1), federations)).astype(int)
    one = np.arange(federations)
    moved = path.moved.cumsum(axis=0)[last - 1, one] / (last * clients)
    unit = last * clients * bracket(step, smoothness, moving)
    end = path.cost[last, one]
    return pd.DataFrame(
        {
            "rounds": last,
            "step": share,
            "left": moved,
            "right": (path.cost[0] - end) / unit,
            "left_printed": moved * clients,
            "right_printed": (path.cost[1] - end) / unit,
        }
    )


def star(clients: int, rounds: int, step: float) -> pd.DataFrame:
    """Case I against Theorem 2: one client is related to all others, and they only to it.

    One parameter, F_i(w) = (w - o_i)^2 / 2 with o = 1 at the hub and 0 elsewhere. All start from
    1 / M, the best common model. Averaging over relatives gives the hub more weight than 1 / M, so
    that the models are dragged towards it and the cost rises.

    Returns: round (t), hub, other (models), cost (F(W^t)), left, right (of eq. (3) for T = t, our
        reading; both 0 for t = 0).
    """
    related = np.eye(clients)
    related[0] = related[:, 0] = 1
    averaging = row_normalised(related)
    minima = np.eye(clients)[0]
    models = np.full(clients, 1 / clients)
    denominator = float(bracket(np.float64(step), np.float64(1), movement(averaging)))
    rows, moved = [], 0.0
    first = ((models - minima) ** 2).sum() / 2
    for number in range(rounds + 1):
        cost = ((models - minima) ** 2).sum() / 2
        share = max(number, 1) * clients
        sides = (moved / share, (first - cost) / share / denominator)
        rows.append((number, models[0], models[1], cost, *sides))
        after = averaging @ (models - step * (models - minima))
        moved += ((after - models) ** 2).sum()
        models = after
    return pd.DataFrame(rows, columns=["round", "hub", "other", "cost", "left", "right"])


def _checks(table: pd.DataFrame, example: pd.DataFrame) -> list[Check]:
    cases = dict(list(table.groupby("case")))
    disjoint = pd.concat([cases["matched"], cases["mismatched"]])
    common, source = "disjoint groups, one common start", "eq. (3)"
    step = "false: eq. (3) needs a step below 0.618 / L, which the paper does not say"
    sums = "false: the sum over i must be over the clients' parts of the matrix"
    start = "false: the right side must start from W^0, as the left does"
    alone = "false: averaging alone moves the models, and may raise the cost"
    case_1 = "false for Case I: an average over relatives is no projection"
    star_note = "false: a client related to all others drags the models from their best"
    return [
        _check("theorem_2_matched", source, cases["matched"], f"holds: {common}"),
        _check("theorem_2_mismatched", source, cases["mismatched"], f"holds: {common}"),
        _check("theorem_2_printed_sum", source, disjoint, sums, left="left_printed"),
        _check("theorem_2_printed_start", source, disjoint, start, right="right_printed"),
        _check("theorem_2_unequal_start", source, cases["unequal start"], alone),
        _check("theorem_2_overlapping", "eq. (3), Case I", cases["overlapping"], case_1),
        _check("theorem_2_star", "eq. (3), Case I", example.iloc[[-1]], star_note),
        _check("theorem_2_large_step", source, cases["large step"], step),
    ]


def _check(
    name: str,
    source: str,
    table: pd.DataFrame,
    note: str,
    left: str = "left",
    right: str = "right",
) -> Check:
    """One row; its value is positive if the statement is violated."""
    excess = table[left] - table[right]
    violations = int((excess > ROUNDING * table[left] + TINY).sum())
    value_name = "largest left side minus right side"
    return Check(name, source, len(table), violations, float(excess.max()), value_name, note)
