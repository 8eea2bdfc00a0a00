"""CFL Fig. 1: data on which one model cannot serve all clients, and data on which it can."""

from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

from clustered_fl.methods.groups import (
    bipartition,
    cosine_similarity,
    intra_min,
    is_correct,
    separation_gap,
)
from clustered_fl.randomness import generator
from clustered_fl.theory.ranges import require_at_least, require_positive
from clustered_fl.theory.tables import stacked

# Centre of the points of each client group [group, label, coordinate].
PANELS = {
    "congruent": [[[-1.0, -0.6], [1.0, -0.6]], [[-1.0, 0.6], [1.0, 0.6]]],
    "xor": [[[-1.0, -1.0], [1.0, -1.0]], [[1.0, 1.0], [-1.0, 1.0]]],
    "diverging conditionals": [[[-1.0, 0.0], [1.0, 0.0]], [[1.0, 0.0], [-1.0, 0.0]]],
}
COORDINATES = ["x1", "x2"]
COEFFICIENTS = ["weight1", "weight2", "bias"]

# Weights and bias [3] by model and the group it was fitted on.
Lines = dict[tuple[str, str], np.ndarray]


def assumption_violations(
    seed: int,
    *,
    clients_per_group: int = 5,
    points_per_client: int = 150,
    spread: float = 0.25,
) -> dict[str, pd.DataFrame]:
    """Fit linear classifiers to three toy federations of two client groups each.

    "congruent": one line separates both groups. "xor": the groups' points together form the XOR
    problem. "diverging conditionals": same points, opposite labels, so that every point is
    disputed. Within a group the classes are always separable.

    Args:
        clients_per_group: at least 2, for similarities within a group to exist.
        points_per_client: labels alternate.
        spread: standard deviation of the points around their centre.
    Returns:
        points: panel, group, client, x1, x2, label.
        accuracies: panel, model, group ("0", "1" or "all"), accuracy. Model "joint" is the
            logistic regression on all points, "best joint" the line with most points right
            (logistic regression does not maximise accuracy), "own" the group's logistic regression.
        lines: panel, model, group, weight1, weight2, bias; the line is where
            weight1 x1 + weight2 x2 + bias = 0, label 1 on its positive side.
        gradients: panel, client, group, weight1, weight2, bias: gradient of the client's mean
            logistic loss at the joint optimum.
        separation: panel, gap, intra_min, cross_max, correct of one bipartition by the cosines of
            these gradients; mean_gradient_norm, max_gradient_norm (eqs. 30, 31).
    Raises:
        InputError: for settings out of range.
    Source: CFL Fig. 1.
    """
    require_at_least(2, clients_per_group=clients_per_group, points_per_client=points_per_client)
    require_positive(spread=spread)
    parts = {}
    for number, panel in enumerate(PANELS):
        random = generator(seed, "assumption_violations", number)
        parts[panel] = _panel(_points(panel, random, clients_per_group, points_per_client, spread))
    return stacked(parts, "panel")


def _points(
    panel: str, random: np.random.Generator, clients: int, points: int, spread: float
) -> pd.DataFrame:
    """Points of all clients: labels alternate, clients are numbered through the groups."""
    client = np.repeat(np.arange(2 * clients), points)
    group, label = client // clients, np.arange(client.size) % 2
    x = np.array(PANELS[panel])[group, label] + spread * random.standard_normal((client.size, 2))
    columns = {"group": group, "client": client, "x1": x[:, 0], "x2": x[:, 1], "label": label}
    return pd.DataFrame(columns)


def _panel(points: pd.DataFrame) -> dict[str, pd.DataFrame]:
    lines = _lines(points)
    gradients = client_gradients(points, lines[("joint", "all")])
    named = [
        {"model": model, "group": group, **dict(zip(COEFFICIENTS, line, strict=True))}
        for (model, group), line in lines.items()
    ]
    return {
        "points": points,
        "accuracies": _accuracies(points, lines),
        "lines": pd.DataFrame(named),
        "gradients": gradients,
        "separation": pd.DataFrame([_separation(gradients)]),
    }


def _lines(points: pd.DataFrame) -> Lines:
    own = {("own", str(group)): logistic_line(part) for group, part in points.groupby("group")}
    return {("joint", "all"): logistic_line(points), ("best joint", "all"): best_line(points)} | own


def logistic_line(points: pd.DataFrame) -> np.ndarray:
    """Weights and bias [3] of a logistic regression of label on x1, x2.

    The penalty is slight: enough for a finite optimum where the classes are separable, too little
    to move it where they are not.
    """
    model = LogisticRegression(C=1e3, tol=1e-9, max_iter=1000)
    model.fit(points[COORDINATES].to_numpy(), points["label"].to_numpy())
    return np.append(model.coef_[0], model.intercept_)


def best_line(points: pd.DataFrame, directions: int = 360) -> np.ndarray:
    """The line with the largest share of points right, among `directions` normals; [3].

    For each normal all thresholds are tried: label 1 lies beyond the threshold.
    """
    angles = 2 * np.pi * np.arange(directions) / directions
    normals = np.stack([np.cos(angles), np.sin(angles)])
    projected = points[COORDINATES].to_numpy() @ normals
    order = projected.argsort(axis=0)
    labels = points["label"].to_numpy()[order]
    # Row i: points 0..i lie before the threshold and count as label 0.
    right = (1 - labels).cumsum(axis=0) + labels.sum(axis=0) - labels.cumsum(axis=0)
    row, direction = np.unravel_index(right[:-1].argmax(), right[:-1].shape)
    beside = np.take_along_axis(projected, order, axis=0)[row : row + 2, direction]
    return np.append(normals[:, direction], -beside.mean())


def scores(points: pd.DataFrame, line: np.ndarray) -> np.ndarray:
    """weight1 x1 + weight2 x2 + bias of every point; positive means label 1."""
    return points[COORDINATES].to_numpy() @ line[:2] + line[2]


def _accuracies(points: pd.DataFrame, lines: Lines) -> pd.DataFrame:
    rows: list[dict[str, Any]] = []
    for (model, fitted_on), line in lines.items():
        right = (scores(points, line) > 0) == points["label"]
        by_group = right.groupby(points["group"]).mean()
        rows += [
            {"model": model, "group": str(group), "accuracy": accuracy}
            for group, accuracy in by_group.items()
            if fitted_on in ("all", str(group))
        ]
        if fitted_on == "all":
            rows.append({"model": model, "group": "all", "accuracy": right.mean()})
    return pd.DataFrame(rows)


def client_gradients(points: pd.DataFrame, line: np.ndarray) -> pd.DataFrame:
    """Gradient of every client's mean logistic loss with respect to weights and bias, at `line`."""
    excess = 1 / (1 + np.exp(-scores(points, line))) - points["label"]
    inputs = points[COORDINATES].assign(one=1.0).set_axis(COEFFICIENTS, axis=1)
    per_point = inputs.mul(excess, axis=0)
    return per_point.groupby([points["client"], points["group"]]).mean().reset_index()


def _separation(gradients: pd.DataFrame) -> dict[str, float | bool]:
    vectors, groups = gradients[COEFFICIENTS].to_numpy(), gradients["group"].to_numpy()
    similarity = cosine_similarity(vectors)
    cut = bipartition(similarity)
    return {
        "gap": separation_gap(similarity, groups),
        "intra_min": intra_min(similarity, groups),
        "cross_max": cut.cross_max,
        "correct": is_correct(cut, groups),
        "mean_gradient_norm": float(np.linalg.norm(vectors.mean(axis=0))),
        "max_gradient_norm": float(np.linalg.norm(vectors, axis=1).max()),
    }
