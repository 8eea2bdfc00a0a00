"""Memory that is lent again only when nothing refers to it any more."""

import pytest
import torch

from clustered_fl.engine import reused
from clustered_fl.engine.reused import ALIGNMENT, Reused

CPU = torch.device("cpu")


@pytest.fixture
def memory():
    return Reused()


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (7, 1001)])
def test_a_matrix_is_aligned(memory, shape):
    found = memory.empty(*shape, CPU)
    assert (found.shape, found.dtype, found.is_contiguous()) == (shape, torch.float32, True)
    assert found.data_ptr() % ALIGNMENT == 0


@pytest.mark.parametrize("shape", [(3, 5), (2, 5), (1, 15)])
def test_memory_is_used_again(memory, shape):
    place = memory.empty(3, 5, CPU).data_ptr()
    assert memory.empty(*shape, CPU).data_ptr() == place


def test_a_larger_matrix_gets_larger_memory(memory):
    memory.empty(3, 5, CPU)
    found = memory.empty(300, 500, CPU)
    found[:] = 1
    assert found.sum() == 150_000


@pytest.mark.parametrize(
    "held",
    [
        lambda matrix: matrix,
        lambda matrix: matrix[1],
        lambda matrix: matrix[:, 2:].T,
        lambda matrix: matrix.view(-1).detach(),
        lambda matrix: matrix.numpy(),
        lambda matrix: list(matrix),
    ],
)
def test_memory_that_is_held_is_not_overwritten(memory, held):
    first = memory.empty(3, 5, CPU)
    first[:] = 1
    kept = held(first)
    del first
    second = memory.empty(3, 5, CPU)
    second[:] = 2
    assert all((torch.as_tensor(part) == 1).all() for part in kept)
    del kept
    third = memory.empty(3, 5, CPU)
    assert third.data_ptr() != second.data_ptr()
    third[:] = 3
    assert (second == 2).all()


def test_large_matrices_are_not_kept(memory, monkeypatch):
    small = memory.empty(3, 5, CPU).data_ptr()
    monkeypatch.setattr(reused, "LARGEST", 60)
    large = memory.empty(4, 5, CPU)
    assert memory.empty(3, 5, CPU).data_ptr() == small
    assert large.shape == (4, 5)
