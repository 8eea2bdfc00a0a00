"""CFL Fig. 1: data for which one model can, and cannot, serve all clients."""

import numpy as np
import pandas as pd
from pydantic import PositiveFloat
from sklearn.linear_model import LogisticRegression

from clustered_fl.methods import groups as groupings
from clustered_fl.randomness import generator
from clustered_fl.theory.ranges import TwoOrMore
from clustered_fl.theory.tables import leaves, stacked

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


@leaves("points", "accuracies", "lines", "gradients", "separation")
def assumption_violations(
    seed: int,
    *,
    clients_per_group: TwoOrMore = 5,
    points_per_client: TwoOrMore = 150,
    spread: PositiveFloat = 0.25,
) -> dict[str, pd.DataFrame]:
    """Fit linear classifiers to three toy federations of two client groups each (CFL Fig. 1).

    "congruent": one line separates both groups. "xor": the groups' points together form the XOR
    problem. "diverging conditionals": same points, opposite labels, so that every point is
    disputed. Within a group the classes are always separable.

    Args:
        clients_per_group: two or more, for similarities within a group to exist.
        points_per_client: their labels alternate.
        spread: standard deviation of the points around their centre.
    Returns:
        points: panel, group, client, x1, x2, label.
        accuracies: panel, model, group ("0", "1" or "all"), accuracy. Model "joint" is the
            logistic regression on all points, "best joint" the most accurate line
            (logistic regression does not maximise accuracy), "own" the group's logistic regression.
        lines: weight1 x1 + weight2 x2 + bias = 0 of each model, label 1 on the positive side.
        gradients: of each client's mean logistic loss at the joint optimum.
        separation: one bipartition by the cosines of these gradients; their norms (eqs. 30, 31).
    """
    client = np.repeat(np.arange(2 * clients_per_group), points_per_client)
    group, label = client // clients_per_group, np.arange(client.size) % 2
    parts = {}
    for number, (panel, centres) in enumerate(PANELS.items()):
        random = generator(seed, "assumption_violations", number)
        x = np.array(centres)[group, label] + spread * random.standard_normal((client.size, 2))
        columns = {"group": group, "client": client, "x1": x[:, 0], "x2": x[:, 1], "label": label}
        parts[panel] = _panel(pd.DataFrame(columns))
    return stacked(parts, "panel")


def _panel(points: pd.DataFrame) -> dict[str, pd.DataFrame]:
    joint = logistic_line(points)
    lines = {("joint", "all"): joint, ("best joint", "all"): best_line(points)}
    lines |= {("own", str(group)): logistic_line(part) for group, part in points.groupby("group")}
    coefficients = pd.DataFrame(list(lines.values()), columns=COEFFICIENTS)
    gradients = client_gradients(points, joint)
    return {
        "points": points,
        "accuracies": _accuracies(points, lines),
        "lines": pd.DataFrame(list(lines), columns=["model", "group"]).join(coefficients),
        "gradients": gradients,
        "separation": pd.DataFrame([_separation(gradients)]),
    }


def logistic_line(points: pd.DataFrame) -> np.ndarray:
    """Weights and bias [3]; the penalty keeps the optimum of separable classes finite."""
    model = LogisticRegression(C=1e3, tol=1e-9, max_iter=1000)
    model.fit(points[COORDINATES].to_numpy(), points["label"].to_numpy())
    return np.append(model.coef_[0], model.intercept_)


def best_line(points: pd.DataFrame, directions: int = 360) -> np.ndarray:
    """The most accurate line [3] among `directions` normals and all thresholds."""
    angles = 2 * np.pi * np.arange(directions) / directions
    normals = np.stack([np.cos(angles), np.sin(angles)])
    projected = points[COORDINATES].to_numpy() @ normals
    order = projected.argsort(axis=0)
    labels = points["label"].to_numpy()[order]
    # Row i: points 0..i are below the threshold, which means label 0.
    right = (1 - labels).cumsum(axis=0) + labels.sum(axis=0) - labels.cumsum(axis=0)
    row, direction = np.unravel_index(right[:-1].argmax(), right[:-1].shape)
    beside = np.take_along_axis(projected, order, axis=0)[row : row + 2, direction]
    return np.append(normals[:, direction], -beside.mean())


def scores(points: pd.DataFrame, line: np.ndarray) -> np.ndarray:
    """weight1 x1 + weight2 x2 + bias of every point; positive means label 1."""
    return points[COORDINATES].to_numpy() @ line[:2] + line[2]


def _accuracies(points: pd.DataFrame, lines: Lines) -> pd.DataFrame:
    rows = []
    for (model, fitted_on), line in lines.items():
        right = (scores(points, line) > 0) == points["label"]
        shares = right.groupby(points["group"].astype(str)).mean().to_dict()
        shares["all"] = right.mean()
        tried = shares if fitted_on == "all" else [fitted_on]
        rows += [{"model": model, "group": group, "accuracy": shares[group]} for group in tried]
    return pd.DataFrame(rows)


def client_gradients(points: pd.DataFrame, line: np.ndarray) -> pd.DataFrame:
    """Gradient of every client's mean logistic loss with respect to weights and bias, at `line`."""
    excess = 1 / (1 + np.exp(-scores(points, line))) - points["label"]
    inputs = points[COORDINATES].assign(one=1.0).set_axis(COEFFICIENTS, axis=1)
    per_point = inputs.mul(excess, axis=0)
    return per_point.groupby([points["client"], points["group"]]).mean().reset_index()


def _separation(gradients: pd.DataFrame) -> dict[str, float | bool]:
    vectors = gradients[COEFFICIENTS].to_numpy()
    similarity = groupings.cosine_similarity(vectors)
    found = groupings.scores(similarity, gradients["group"].to_numpy())
    return {
        "gap": found["gap"],
        "intra_min": found["intra"],
        "cross_max": found["cut"],
        "correct": found["correct"] == 1,
        "mean_gradient_norm": np.linalg.norm(vectors.mean(axis=0)),
        "max_gradient_norm": np.linalg.norm(vectors, axis=1).max(),
    }
