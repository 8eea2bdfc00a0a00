"""Lloyd's algorithm on a matrix of models against scikit-learn's k-means in double precision."""

import numpy as np
import pytest
import torch
from sklearn.cluster import KMeans

from clustered_fl.engine import lloyd as module
from clustered_fl.engine.lloyd import lloyd


def models(seed: int, spread: float) -> torch.Tensor:
    """Ninety models in seven overlapping clusters, far from zero and close to each other."""
    rng = np.random.default_rng(seed)
    shared, own = rng.normal(size=50), rng.normal(size=(7, 50))
    moved = 30 * shared + own[rng.integers(7, size=90)] + spread * rng.normal(size=(90, 50))
    return torch.from_numpy(moved).float()


@pytest.mark.parametrize("columns", [8192, 7])
@pytest.mark.parametrize("spread", [1.0, 2.0, 3.0])
@pytest.mark.parametrize("seed", range(4))
def test_labels_are_those_of_scikit_learn(monkeypatch, seed, spread, columns):
    monkeypatch.setattr(module, "COLUMNS", columns)
    points, rng = models(seed, spread), np.random.default_rng(seed)
    weights, first = rng.integers(1, 5, 90), points[rng.choice(90, 6, replace=False)]
    exact = points.double().numpy()
    expected = KMeans(6, init=first.double().numpy(), n_init=1).fit(exact, sample_weight=weights)
    assert expected.n_iter_ > 2
    assert lloyd(points, weights, first).tolist() == expected.labels_.tolist()


def test_points_of_weight_zero_move_no_centre():
    points = torch.tensor([[0.0], [1.0], [4.5], [9.0], [10.0]])
    centres = torch.tensor([[1.0], [9.0]])
    weights = np.array([1, 1, 0, 1, 1])
    assert lloyd(points, weights, centres).tolist() == [0, 0, 0, 1, 1]
    alone = lloyd(points[weights > 0], weights[weights > 0], centres)
    assert alone.tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("weights", [[1, 1, 1], [1, 1, 0]])
def test_an_empty_cluster_is_left_to_others(weights):
    points = torch.tensor([[0.0], [1.0], [8.0]])
    centres = torch.tensor([[0.5], [8.0]]) if weights[2] == 0 else torch.tensor([[0.5], [99.0]])
    assert lloyd(points, np.array(weights), centres) is None


def test_it_ends_after_the_most_iterations(monkeypatch):
    points = torch.arange(12.0)[:, None]
    centres, weights = torch.tensor([[0.0], [1.0]]), np.ones(12, dtype=int)
    assert lloyd(points, weights, centres).tolist() == [0] * 6 + [1] * 6
    monkeypatch.setattr(module, "ITERATIONS", 1)
    assert lloyd(points, weights, centres).tolist() == [0] + [1] * 11
