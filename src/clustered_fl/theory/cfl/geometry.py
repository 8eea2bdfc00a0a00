"""The illustrations of CFL's proof (arXiv Figs. 10 to 12) as numbers that can be checked."""

from typing import Any

import numpy as np
import pandas as pd
from pydantic import PositiveInt

from clustered_fl.methods.groups import bipartition, cosine_similarity, is_correct
from clustered_fl.randomness import generator
from clustered_fl.theory.cfl.bounds import noise_bound
from clustered_fl.theory.cfl.spanning import weakest_links
from clustered_fl.theory.ranges import Fraction, ThreeOrMore
from clustered_fl.theory.search import ROUNDING
from clustered_fl.theory.tables import leaves, stacked

# True gradients of Fig. 10, which sum to zero.
TRUE = np.array([[1.0, 0.2], [-0.3, 0.9], [-0.7, -1.1]])
CLIENTS_PER_GROUP = 3
# Noise ratios of X and Y in Fig. 11.
RATIOS = (0.5, 0.35)
ORIGIN = np.zeros(2)


@leaves("arrows", "angles", "sweep", "predicates")
def proof_illustrations(
    seed: int,
    *,
    noise: Fraction = 0.35,
    vectors: ThreeOrMore = 7,
    arrangements: PositiveInt = 2000,
    sweep_points: ThreeOrMore = 361,
) -> dict[str, pd.DataFrame]:
    """Build the three configurations of arXiv supplement VIII-A and check the proof's statements.

    Args:
        noise: largest noise ratio in Fig. 10; Theorem 1 holds up to 0.383 for K = 3.
        vectors: number of vectors in the circular arrangement of Fig. 12.
        arrangements: random circular arrangements per number of vectors from 3 to `vectors`.
        sweep_points: directions of X in table `sweep`.
    Returns:
        arrows: figure, name, kind ("true", "noise", "client"), group, half, from1, from2, to1, to2.
        angles: figure, role, first, second (names of arrows), degrees.
        sweep: direction of X, degrees between v and v + X (Fig. 11), widest at the tangent.
        predicates: statements of the proof, with trials and violations.
    """
    circles = circle_predicates(generator(seed, "circle_predicates"), vectors, arrangements)
    circle = _figure_12(generator(seed, "proof_illustrations", 12), vectors)
    figures = {
        "fig10": _figure_10(generator(seed, "proof_illustrations", 10), noise),
        "fig11": _figure_11(),
        "fig12": circle | {"predicates": circles},
    }
    direction = np.linspace(0, 2 * np.pi, sweep_points)
    end = np.array([1.0, 0.0]) + RATIOS[0] * _unit(direction)
    turn = np.abs(np.arctan2(end[:, 1], end[:, 0]))
    sweep = pd.DataFrame({"direction": np.degrees(direction), "degrees": np.degrees(turn)})
    return stacked(figures, "figure") | {"sweep": sweep}


def _figure_10(random: np.random.Generator, noise: float) -> dict[str, pd.DataFrame]:
    """Three groups of three clients: largest angle within a group against the cut."""
    group = np.repeat(np.arange(len(TRUE)), CLIENTS_PER_GROUP)
    true = TRUE[group]
    direction = random.uniform(0, 2 * np.pi, len(group))
    length = noise * random.uniform(0.5, 1, len(group)) * np.linalg.norm(true, axis=1)
    clients = true + length[:, None] * _unit(direction)
    similarity = cosine_similarity(clients)
    cut = bipartition(similarity)
    half = np.isin(np.arange(len(group)), cut.second).astype(int)
    *within, across = _angles_10(similarity, group, half)
    gap = across["degrees"] - max(angle["degrees"] for angle in within)
    statement = "a cut wider than every angle within a group divides no group"
    fact = _fact(statement, gap, "cut minus widest group, degrees")
    fact["violations"] = int(gap > 0 and not is_correct(cut, group))
    first = half[::CLIENTS_PER_GROUP]
    arrows = [_arrow(f"v{k}", "true", to, group=k, half=first[k]) for k, to in enumerate(TRUE)]
    for i, (k, to) in enumerate(zip(group, clients, strict=True)):
        arrows.append(_arrow(f"X{i}", "noise", to, TRUE[k], group=k, half=half[i]))
        arrows.append(_arrow(f"r{i}", "client", to, group=k, half=half[i]))
    return {
        "arrows": pd.DataFrame(arrows),
        "angles": pd.DataFrame([*within, across]),
        "predicates": pd.DataFrame([fact]),
    }


def _angles_10(similarity: np.ndarray, group: np.ndarray, half: np.ndarray) -> list[dict[str, Any]]:
    """The widest pair of each group and the closest pair across the cut."""
    together = group[:, None] == group[None, :]
    scores = [np.where(together & (group == k), -similarity, -np.inf) for k in np.unique(group)]
    scores.append(np.where(half[:, None] != half[None, :], similarity, -np.inf))
    rows = []
    for role, score in zip(["within"] * len(TRUE) + ["cut"], scores, strict=True):
        i, j = np.unravel_index(score.argmax(), score.shape)
        rows.append(_angle(role, f"r{i}", f"r{j}", np.arccos(similarity[i, j])))
    return rows


def _figure_11() -> dict[str, pd.DataFrame]:
    """X and Y turn v as far as their lengths allow: both are tangents' contact vectors."""
    v = np.array([1.0, 0.0])
    turns = np.arcsin(RATIOS) * [1, -1]
    ends = np.cos(turns)[:, None] * _unit(turns)
    arrows, angles = [_arrow("v", "true", v)], []
    for name, end, turn in zip("XY", ends, turns, strict=True):
        arrows += [_arrow(name, "noise", end, v), _arrow(f"v+{name}", "client", end)]
        angles.append(_angle("turn", "v", f"v+{name}", abs(turn)))
    angles.append(_angle("widest", "v+X", "v+Y", np.abs(turns).sum()))
    distance = np.abs(cosine_similarity(ends)[0, 1] - noise_bound(*np.array(RATIOS)))
    leaning = np.abs(((ends - v) * ends).sum(axis=1)).max()
    lengths = np.abs(np.linalg.norm(ends - v, axis=1) - RATIOS).max()
    predicates = [
        _fact("v + X and v + Y attain the bound of Lemma 2", distance, "distance from it"),
        _fact("X, Y are perpendicular to v + X, v + Y", leaning, "inner product"),
        _fact("X, Y have the lengths that the noise ratios allow", lengths, "difference"),
    ]
    tables = {"arrows": arrows, "angles": angles, "predicates": predicates}
    return {name: pd.DataFrame(rows) for name, rows in tables.items()}


def _figure_12(random: np.random.Generator, vectors: int) -> dict[str, pd.DataFrame]:
    """Vectors around the circle: the largest and second largest gap separate the halves."""
    ends = _arrangements(random, 1, vectors)[0]
    half = np.isin(np.arange(vectors), bipartition(cosine_similarity(ends)).second).astype(int)
    gaps = circular_gaps(ends[None])[0]
    roles = dict(zip(gaps.argsort()[::-1], ["largest gap", "second largest gap"], strict=False))
    arrows = [_arrow(f"v{i}", "true", ends[i], group=i, half=half[i]) for i in range(vectors)]
    angles = [
        _angle(roles.get(i, "gap"), f"v{i}", f"v{(i + 1) % vectors}", gap)
        for i, gap in enumerate(gaps)
    ]
    return {"arrows": pd.DataFrame(arrows), "angles": pd.DataFrame(angles)}


def circle_predicates(random: np.random.Generator, vectors: int, arrangements: int) -> pd.DataFrame:
    """Eqs. (85), (90), (91) over random vectors in the plane that sum to zero."""
    cuts, gaps, bounds = [], [], []
    for count in range(3, vectors + 1):
        drawn = _arrangements(random, arrangements, count)
        unit = drawn / np.linalg.norm(drawn, axis=2, keepdims=True)
        cuts.append(weakest_links(unit @ unit.mT).similarity)
        gaps.append(np.sort(circular_gaps(drawn), axis=1)[:, -2:])
        bounds.append(np.full(arrangements, np.pi / (count - 1)))
    second, largest = np.concatenate(gaps).T
    misses = np.abs(np.concatenate(cuts) - np.cos(second))
    short = np.concatenate(bounds) - second
    facts = [
        _fact("the cut is the second largest gap (eq. 90)", misses, "largest miss, cosine"),
        _fact("no gap exceeds pi", largest - np.pi, "largest gap minus pi"),
        _fact("the second largest gap is at least pi/(k-1) (eq. 91)", short, "bound minus gap"),
    ]
    return pd.DataFrame(facts)


def _arrangements(random: np.random.Generator, trials: int, vectors: int) -> np.ndarray:
    """Plane vectors [trials, vectors, 2] that sum to zero, in the order of their angles."""
    drawn = random.standard_normal((trials, vectors, 2))
    drawn -= drawn.mean(axis=1, keepdims=True)
    order = np.arctan2(drawn[:, :, 1], drawn[:, :, 0]).argsort(axis=1)
    return np.take_along_axis(drawn, order[:, :, None], axis=1)


def circular_gaps(vectors: np.ndarray) -> np.ndarray:
    """Angles from each of the ordered vectors [trials, k, 2] to the next, around the circle."""
    angles = np.arctan2(vectors[:, :, 1], vectors[:, :, 0])
    return np.diff(angles, axis=1, append=angles[:, :1] + 2 * np.pi)


def _unit(angle: np.ndarray) -> np.ndarray:
    return np.stack([np.cos(angle), np.sin(angle)], axis=-1)


def _arrow(
    name: str, kind: str, to: np.ndarray, start: np.ndarray = ORIGIN, group: int = 0, half: int = 0
) -> dict[str, Any]:
    ends = {"from1": start[0], "from2": start[1], "to1": to[0], "to2": to[1]}
    return {"name": name, "kind": kind, "group": group, "half": half, **ends}


def _angle(role: str, first: str, second: str, radians: float) -> dict[str, Any]:
    return {"role": role, "first": first, "second": second, "degrees": np.degrees(radians)}


def _fact(statement: str, excess: np.ndarray, value_name: str) -> dict[str, Any]:
    """A row of the table of predicates; a positive excess is a violation."""
    counts = {"trials": excess.size, "violations": (excess > ROUNDING).sum()}
    return {"statement": statement, **counts, "value": excess.max(), "value_name": value_name}
