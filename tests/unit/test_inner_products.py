"""Inner products in blocks against the definition, in float64."""

import numpy as np
import pytest
import torch

from clustered_fl.engine import inner_products
from clustered_fl.engine.inner_products import gram


@pytest.fixture(params=[7, 3, 1])
def vectors(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> torch.Tensor:
    """Seven vectors that take three blocks of columns and one to seven of rows, nearly alike."""
    monkeypatch.setattr(inner_products, "COLUMNS", 4)
    monkeypatch.setattr(inner_products, "ROWS", request.param)
    rng = np.random.default_rng(0)
    return torch.from_numpy(1 + 1e-3 * rng.standard_normal((7, 10))).float()


def test_gram_is_that_of_the_definition(vectors: torch.Tensor) -> None:
    exact = vectors.numpy().astype(np.float64)
    found = gram(vectors)
    np.testing.assert_allclose(found, exact @ exact.T, rtol=1e-14)
    assert found.dtype == np.float64
    assert (found == found.T).all()
    assert (gram(list(vectors)) == found).all()


def test_gram_of_centred_vectors_keeps_what_float32_would_lose(vectors: torch.Tensor) -> None:
    exact = vectors.numpy().astype(np.float64)
    exact -= exact.mean(0)
    np.testing.assert_allclose(gram(vectors, centred=True), exact @ exact.T, rtol=1e-9, atol=1e-20)


def test_inner_products_with_others(vectors: torch.Tensor) -> None:
    exact = vectors.numpy().astype(np.float64)
    found = inner_products.inner_products(vectors[:2], vectors)
    np.testing.assert_allclose(found, exact[:2] @ exact.T, rtol=1e-14)


def test_the_vectors_stay_as_they_are(vectors: torch.Tensor) -> None:
    before = vectors.clone()
    gram(vectors, centred=True)
    assert (vectors == before).all()


def test_more_vectors_take_fewer_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inner_products, "ENTRIES", 20)
    blocks = list(inner_products._blocks(torch.arange(30.0).reshape(5, 6), 5))
    assert [block.shape for block in blocks] == [(5, 4), (5, 2)]
