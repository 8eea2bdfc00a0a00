"""The pictures of CFL's proof (arXiv Figs. 10 to 12) as numbers that can be checked."""

from typing import Any

import numpy as np
import pandas as pd

from clustered_fl.methods.groups import bipartition, cosine_similarity, is_correct
from clustered_fl.randomness import generator
from clustered_fl.theory.bounds import noise_bound
from clustered_fl.theory.ranges import require_at_least, require_between
from clustered_fl.theory.spanning import weakest_links
from clustered_fl.theory.tables import stacked

# True gradients of Fig. 10, which sum to zero.
TRUE = np.array([[1.0, 0.2], [-0.3, 0.9], [-0.7, -1.1]])
CLIENTS_PER_GROUP = 3
# Noise ratios of X and Y in Fig. 11.
RATIOS = (0.5, 0.35)
ROUNDING = 1e-9


def proof_illustrations(
    seed: int,
    *,
    noise: float = 0.35,
    vectors: int = 7,
    arrangements: int = 2000,
    sweep_points: int = 361,
) -> dict[str, pd.DataFrame]:
    """Build the three configurations and check what the proof says of them.

    Args:
        noise: largest noise ratio in Fig. 10; the promise of Theorem 1 ends at 0.383 for K = 3.
        vectors: number of vectors in the circular arrangement of Fig. 12.
        arrangements: random circular arrangements per number of vectors from 3 to `vectors`.
        sweep_points: directions of X in table `sweep`.
    Returns:
        arrows: figure, name, kind ("true", "noise", "client"), group, half, from1, from2, to1, to2.
        angles: figure, role, first, second (names of arrows), degrees.
        sweep: direction, degrees: angle between v and v + X for each direction of X (Fig. 11).
        predicates: figure, statement, trials, violations, value, value_name.
    Raises:
        InputError: for settings out of range.
    Source: arXiv supplement VIII-A, Figs. 10 to 12.
    """
    require_between(0, 1, noise=noise)
    require_at_least(3, vectors=vectors, sweep_points=sweep_points)
    require_at_least(1, arrangements=arrangements)
    figures = {
        "fig10": _figure_10(generator(seed, "proof_illustrations", 10), noise),
        "fig11": _figure_11(),
        "fig12": _figure_12(generator(seed, "proof_illustrations", 12), vectors),
    }
    figures["fig12"]["predicates"] = circle_predicates(
        generator(seed, "circle_predicates"), vectors, arrangements
    )
    return stacked(figures, "figure") | {"sweep": _sweep(sweep_points)}


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
    angles = _angles_10(similarity, group, half)
    widest = angles.loc[angles["role"] == "within", "degrees"].max()
    gap = angles.loc[angles["role"] == "cut", "degrees"].item() - widest
    wrong = int(gap > 0 and not is_correct(cut, group))
    statement = "a cut wider than every angle within a group divides no group"
    return {
        "arrows": _arrows_10(clients, group, half),
        "angles": angles,
        "predicates": _predicates([(statement, 1, wrong, gap, "cut minus widest group, degrees")]),
    }


def _arrows_10(clients: np.ndarray, group: np.ndarray, half: np.ndarray) -> pd.DataFrame:
    first = np.unique(group, return_index=True)[1]
    rows = [_arrow(f"v{k}", "true", TRUE[k], group=k, half=half[i]) for k, i in enumerate(first)]
    for i, (k, to) in enumerate(zip(group, clients, strict=True)):
        rows.append(_arrow(f"X{i}", "noise", to, TRUE[k], group=k, half=half[i]))
        rows.append(_arrow(f"r{i}", "client", to, group=k, half=half[i]))
    return pd.DataFrame(rows)


def _angles_10(similarity: np.ndarray, group: np.ndarray, half: np.ndarray) -> pd.DataFrame:
    """The widest pair of each group and the closest pair across the cut."""
    together = group[:, None] == group[None, :]
    rows = []
    for k in np.unique(group):
        members = together & (group == k)
        rows.append(_angle_of("within", np.where(members, -similarity, -np.inf), similarity))
    across = half[:, None] != half[None, :]
    rows.append(_angle_of("cut", np.where(across, similarity, -np.inf), similarity))
    return pd.DataFrame(rows)


def _angle_of(role: str, score: np.ndarray, similarity: np.ndarray) -> dict[str, Any]:
    """The pair of clients with the highest score, and the angle between them."""
    i, j = np.unravel_index(score.argmax(), score.shape)
    return _angle(role, f"r{i}", f"r{j}", np.arccos(similarity[i, j]))


def _figure_11() -> dict[str, pd.DataFrame]:
    """X and Y turn v as far as their lengths allow: both are tangents' contact vectors."""
    v = np.array([1.0, 0.0])
    turns = np.arcsin(RATIOS) * [1, -1]
    ends = np.cos(turns)[:, None] * _unit(turns)
    names = ("X", "Y")
    arrows = [_arrow("v", "true", v)]
    for name, end in zip(names, ends, strict=True):
        arrows += [_arrow(name, "noise", end, v), _arrow(f"v+{name}", "client", end)]
    angles = [
        _angle("turn", "v", f"v+{name}", abs(turn)) for name, turn in zip(names, turns, strict=True)
    ]
    angles.append(_angle("widest", "v+X", "v+Y", np.abs(turns).sum()))
    excess = cosine_similarity(ends)[0, 1] - noise_bound(*np.array(RATIOS))
    leaning = np.abs(((ends - v) * ends).sum(axis=1))
    lengths = np.abs(np.linalg.norm(ends - v, axis=1) - RATIOS)
    facts = [
        ("v + X and v + Y attain the bound of Lemma 2", abs(excess), "distance from it"),
        ("X, Y are perpendicular to v + X, v + Y", leaning.max(), "inner product"),
        ("X, Y have the lengths that the noise ratios allow", lengths.max(), "difference"),
    ]
    checks = [(text, 1, int(value > ROUNDING), value, name) for text, value, name in facts]
    return {
        "arrows": pd.DataFrame(arrows),
        "angles": pd.DataFrame(angles),
        "predicates": _predicates(checks),
    }


def _sweep(points: int) -> pd.DataFrame:
    """Angle between v and v + X as X of length RATIOS[0] turns: widest at the tangent."""
    direction = np.linspace(0, 2 * np.pi, points)
    end = np.array([1.0, 0.0]) + RATIOS[0] * _unit(direction)
    angle = np.abs(np.arctan2(end[:, 1], end[:, 0]))
    return pd.DataFrame({"direction": np.degrees(direction), "degrees": np.degrees(angle)})


def _figure_12(random: np.random.Generator, vectors: int) -> dict[str, pd.DataFrame]:
    """Vectors around the circle: the largest and second largest gap separate the halves."""
    ends = _arrangements(random, 1, vectors)[0]
    half = np.isin(np.arange(vectors), bipartition(cosine_similarity(ends)).second).astype(int)
    gaps = circular_gaps(ends[None])[0]
    rank = gaps.argsort()[::-1].argsort()
    roles = np.where(rank == 0, "largest gap", np.where(rank == 1, "second largest gap", "gap"))
    rows = [_angle(roles[i], f"v{i}", f"v{(i + 1) % vectors}", gaps[i]) for i in range(vectors)]
    arrows = [_arrow(f"v{i}", "true", ends[i], group=i, half=half[i]) for i in range(vectors)]
    return {"arrows": pd.DataFrame(arrows), "angles": pd.DataFrame(rows)}


def circle_predicates(random: np.random.Generator, vectors: int, arrangements: int) -> pd.DataFrame:
    """Eqs. (85), (90), (91) over random vectors in the plane that sum to zero.

    Returns: statement, trials, violations, value, value_name.
    """
    cuts, gaps, counts = [], [], []
    for count in range(3, vectors + 1):
        drawn = _arrangements(random, arrangements, count)
        unit = drawn / np.linalg.norm(drawn, axis=2, keepdims=True)
        cuts.append(weakest_links(unit @ unit.mT).similarity)
        gaps.append(np.sort(circular_gaps(drawn), axis=1)[:, -2:])
        counts.append(np.full(arrangements, np.pi / (count - 1)))
    (second, largest), bound = np.concatenate(gaps).T, np.concatenate(counts)
    misses = np.abs(np.concatenate(cuts) - np.cos(second))
    facts = [
        ("the cut is the second largest gap (eq. 90)", misses, "largest miss, cosine"),
        ("no gap exceeds pi", largest - np.pi, "largest gap minus pi"),
        ("the second largest gap is at least pi/(k-1) (eq. 91)", bound - second, "bound minus gap"),
    ]
    return _predicates(
        [
            (text, len(bound), int((excess > ROUNDING).sum()), excess.max(), name)
            for text, excess, name in facts
        ]
    )


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
    name: str,
    kind: str,
    to: np.ndarray,
    start: np.ndarray | None = None,
    group: int = 0,
    half: int = 0,
) -> dict[str, Any]:
    from1, from2 = (0.0, 0.0) if start is None else start
    what = {"name": name, "kind": kind, "group": group, "half": half}
    return what | {"from1": from1, "from2": from2, "to1": to[0], "to2": to[1]}


def _angle(role: str, first: str, second: str, radians: float) -> dict[str, Any]:
    return {"role": role, "first": first, "second": second, "degrees": np.degrees(radians)}


def _predicates(rows: list[tuple[str, int, int, float, str]]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["statement", "trials", "violations", "value", "value_name"])
