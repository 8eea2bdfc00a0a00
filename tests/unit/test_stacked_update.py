"""The optimiser of a stack does what the plain one does, client by client, in fewer passes."""

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from clustered_fl.engine.sequential import Update
from clustered_fl.engine.stacked_update import STRETCH, StackedUpdate, norms
from clustered_fl.engine.workload import LocalSettings

CLIENTS, SIZE, STEPS, ROUND = 4, 3000, 5, 3
CHANGES = {
    "plain": {},
    "momentum": {"momentum": 0.9},
    "decay": {"decay": 0.5},
    "fedprox": {"proximal": 0.1},
    "clip": {"clip": 0.5},
    "momentum, fedprox": {"momentum": 0.5, "proximal": 0.1},
    "momentum, fedprox, clip": {"momentum": 0.5, "proximal": 0.1, "clip": 0.5},
    "adam": {"optimiser": "adam"},
    "adam, fedprox": {"optimiser": "adam", "proximal": 0.1},
    "adam, fedprox, clip": {"optimiser": "adam", "proximal": 0.1, "clip": 0.5},
}
PASSES = dict(zip(CHANGES, (1, 2, 1, 3, 3, 4, 6, 2, 4, 6), strict=True))
"""As the docstring of the module says, the writing of the gradient not counted."""


def local(name: str) -> LocalSettings:
    return LocalSettings(epochs=1, batch_size=10, lr=0.01, **CHANGES[name])


def drawn(number: int, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(number))


def made(name: str) -> tuple[StackedUpdate, Tensor, Tensor, Tensor]:
    """An optimiser with the memory that it works on: models, start and gradient."""
    memory = [torch.zeros(CLIENTS, SIZE) for _ in range(3)]
    update = StackedUpdate(local(name), *memory)
    update.reset(ROUND)
    return (update, *memory)


def taken(update: StackedUpdate, models: Tensor, start: Tensor, gradient: Tensor) -> Tensor:
    """Models after some steps; client k is idle after k + 2 of them."""
    start.copy_(drawn(0, CLIENTS, SIZE))
    models.copy_(start)
    for number in range(STEPS):
        active = torch.arange(CLIENTS)[:, None] + 2 > number
        gradient.copy_(drawn(1 + number, CLIENTS, SIZE) * active)
        update.step(active)
    return models.clone()


@pytest.mark.parametrize("name", CHANGES)
def test_steps_are_those_of_each_client_by_itself(name: str) -> None:
    start, found = drawn(0, CLIENTS, SIZE), taken(*made(name))
    for client in range(CLIENTS):
        model, plain = start[client].clone(), Update(local(name), start[client], ROUND)
        for number in range(min(STEPS, client + 2)):
            plain.step(model, drawn(1 + number, CLIENTS, SIZE)[client])
        error = (found[client] - model).norm() / (model - start[client]).norm()
        assert error < 2e-5 if "adam" in name else error < 1e-6


@pytest.mark.parametrize("name", CHANGES)
def test_a_second_round_remembers_nothing(name: str) -> None:
    update, *memory = made(name)
    first = taken(update, *memory)
    update.reset(ROUND)
    assert torch.equal(taken(update, *memory), first)


class Passes(TorchDispatchMode):
    """Counts operations on something as large as all models that do not only look at it anew."""

    def __init__(self) -> None:
        super().__init__()
        self.found = []

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        result = operation(*args, **(kwargs or {}))
        tensors = [each for each in tree_leaves((args, kwargs)) if isinstance(each, Tensor)]
        # Less than all, for a norm of whole stretches leaves out the rest.
        large = any(each.numel() >= CLIENTS * STRETCH for each in tensors)
        if large and not operation.is_view and "slice" not in operation.name():
            self.found.append(operation.name())
        return result


@pytest.mark.parametrize("name", CHANGES)
def test_passes_over_the_parameters_are_as_many_as_said(name: str) -> None:
    update, *_ = made(name)
    with Passes() as mode:
        update.step(torch.ones(CLIENTS, 1, dtype=torch.bool))
    assert len(mode.found) == PASSES[name], mode.found


@pytest.mark.parametrize("size", [1, 5, STRETCH - 1, STRETCH, STRETCH + 1, 2_000_000])
def test_norms_are_those_in_double_precision(size: int) -> None:
    rows = drawn(0, 3, size) * torch.tensor([[1e-12], [1.0], [1e12]])
    found = norms(rows)
    assert found.dtype == torch.float64
    expected = rows.double().square().sum(1, keepdim=True).sqrt()
    assert torch.allclose(found, expected, rtol=1e-6, atol=0)
