"""FLT's Theorem 2: does a round of FLT descend as in eq. (3)?

Our interpretation where the paper is silent (we have not seen the supplement with its proof):

- F(W) is the sum of the clients' costs F_i(w_i), because every client steps along the gradient of
  its own cost (Algorithm 3, line 9). L_W, its smoothness, is the largest of the F_i.
- A round is one full step of every client, then averaging: w_i <- sum_j A_ij (w_j - eta grad F_j)
  with A the row-normalised relatedness matrix (line 17 with the weights that sum to one).
- The norm of I - A is the spectral norm, the smallest, which makes the theorem strongest.
- Eq. (3) sums |W^t - W^(t-1)|^2, which does not depend on i, over i. We read client i's part of it;
  taken literally the left side is M times as large (`theorem_2_printed_sum`).
- The left side counts the step from W^0 to W^1, the right side starts from F(W^1). We start both
  from W^0; taken literally T = 1 makes the right side zero (`theorem_2_printed_start`).

In this interpretation the theorem is true for disjoint groups and one common start: A is then a
projection and keeps W in its range, so that a step is D = -eta grad F A with <grad F, D> =
-|D|^2 / eta, and F falls by at least (1/eta - L/2) |D|^2, more than twice the bracket of eq. (3).
For overlapping relatedness (Case I), whose A is no projection, and for unequal starts, averaging
moves the models by itself and can raise F.
"""

from itertools import product

import numpy as np
import pandas as pd
from pydantic import PositiveInt

from clustered_fl.randomness import generator
from clustered_fl.theory.flt import quadratics
from clustered_fl.theory.flt.averaging_code import plain_average
from clustered_fl.theory.flt.quadratics import CASES, Case, relatedness
from clustered_fl.theory.ranges import Fraction, Listed, ThreeOrMore, require_at_least
from clustered_fl.theory.search import ROUNDING, Check, counted
from clustered_fl.theory.tables import leaves

# A squared movement due to rounding only.
TINY = 1e-15


@leaves("federations", "star", "checks")
def descent(
    seed: int,
    *,
    federations: PositiveInt = 100,
    shapes: Listed[tuple[PositiveInt, PositiveInt]] = ((4, 1), (4, 2), (10, 1), (10, 5)),
    groups: PositiveInt = 2,
    rounds: PositiveInt = 50,
    star_clients: ThreeOrMore = 5,
    star_rounds: PositiveInt = 500,
    star_step: Fraction = 0.02,
) -> dict[str, pd.DataFrame]:
    """Compare both sides of eq. (3) on random quadratic costs.

    Args:
        federations: per case and shape (numbers of clients M and of parameters d).
        rounds: largest T.
        star_clients, star_rounds, star_step: of the counterexample, see `star`.
    Returns: federations: case, clients, dimension, and see `compared`; star; checks: see `Check`.
    Raises: InputError if there are more groups than clients.
    """
    require_at_least(groups, clients=min(clients for clients, _ in shapes))
    parts = []
    for case, (clients, dimension) in product(CASES, shapes):
        random = generator(seed, f"descent {case}", clients, dimension)
        part = compared(random, CASES[case], federations, clients, dimension, groups, rounds)
        keys = {"case": case, "clients": clients, "dimension": dimension}
        parts.append(pd.DataFrame({**keys, **part}))
    table = pd.concat(parts, ignore_index=True)
    example = star(star_clients, star_rounds, star_step)
    return {"federations": table, "star": example, "checks": pd.DataFrame(_checks(table, example))}


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
    costs = quadratics.quadratics(random, federations, group, dimension)
    related = relatedness(random, case.averaging, federations, group)
    averaging = plain_average(related, np.ones(clients))
    models = quadratics.first_models(random, case.start, costs)
    smoothness, moving = costs.smoothness(), movement(averaging)
    share = random.uniform(*case.steps, federations)
    step = share * largest_step(smoothness, moving)
    path = quadratics.descend(costs, averaging, models, step, rounds)
    # Small and large numbers of rounds are equally informative.
    last = np.exp(random.uniform(0, np.log(rounds + 1), federations)).astype(int)
    one = np.arange(federations)
    moved = path.moved.cumsum(axis=0)[last - 1, one] / (last * clients)
    unit = last * clients * bracket(step, smoothness, moving)
    right, right_printed = (path.cost[:2] - path.cost[last, one]) / unit
    ours = {"rounds": last, "step": share, "left": moved, "right": right}
    printed = {"left_printed": moved * clients, "right_printed": right_printed}
    return pd.DataFrame(ours | printed)


def star(clients: int, rounds: int, step: float) -> pd.DataFrame:
    """Case I against Theorem 2: one client is related to all others, and they only to it.

    One parameter, F_i(w) = (w - o_i)^2 / 2 with o = 1 at the hub and 0 elsewhere; all start from
    1 / M, the best common model. Averaging over relatives gives the hub more weight than 1 / M, so
    that the models are dragged towards it and the cost rises.
    Returns: round (t), hub, other (models), cost (F(W^t)), left, right (of eq. (3) for T = t).
    """
    related = np.eye(clients)
    related[0] = related[:, 0] = 1
    averaging = plain_average(related, np.ones(clients))
    denominator = bracket(step, 1, movement(averaging))
    minima, models = np.eye(clients)[0], np.full(clients, 1 / clients)
    rows, moved = [], 0.0
    for number in range(rounds + 1):
        rows.append((number, models[0], models[1], ((models - minima) ** 2).sum() / 2, moved))
        after = averaging @ (models - step * (models - minima))
        moved += ((after - models) ** 2).sum()
        models = after
    table = pd.DataFrame(rows, columns=["round", "hub", "other", "cost", "left"])
    share = table["round"].clip(lower=1) * clients
    table["right"] = (table["cost"][0] - table["cost"]) / share / denominator
    return table.assign(left=table["left"] / share)


def _checks(table: pd.DataFrame, example: pd.DataFrame) -> list[Check]:
    cases = dict(list(table.groupby("case")))
    disjoint = pd.concat([cases["matched"], cases["mismatched"]])
    source, holds = "eq. (3)", "holds: disjoint groups, one common start"
    step = "false: eq. (3) needs a step below 0.618 / L, which the paper does not say"
    sums = "false: the sum over i must be over the clients' parts of the matrix"
    start = "false: the right side must start from W^0, as the left does"
    alone = "false: averaging alone moves the models, and may raise the cost"
    case_1 = "false for Case I: an average over relatives is not a projection"
    star_note = "false: a client related to all others pulls the models away from the optimum"
    return [
        _check("theorem_2_matched", source, cases["matched"], holds),
        _check("theorem_2_mismatched", source, cases["mismatched"], holds),
        _check("theorem_2_printed_sum", source, disjoint, sums, left="left_printed"),
        _check("theorem_2_printed_start", source, disjoint, start, right="right_printed"),
        _check("theorem_2_unequal_start", source, cases["unequal start"], alone),
        _check("theorem_2_overlapping", "eq. (3), Case I", cases["overlapping"], case_1),
        _check("theorem_2_star", "eq. (3), Case I", example.iloc[[-1]], star_note),
        _check("theorem_2_large_step", source, cases["large step"], step),
    ]


def _check(
    name: str, source: str, table: pd.DataFrame, note: str, left: str = "left", right: str = "right"
) -> Check:
    """One row; its value is positive if the statement is violated."""
    excess = table[left] - table[right]
    wrong = excess > ROUNDING * table[left] + TINY
    return counted(name, source, wrong, excess.max(), "largest left side minus right side", note)
