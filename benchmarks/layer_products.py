"""The matrix products and convolutions of one training step, each by itself with PyTorch.

A layer has three: forward, the gradient of its weight, and the gradient of its input, which the
first layer does without. All take the same number of multiply-adds.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import torch
from torch.nn import functional
from torch.nn.grad import conv2d_input, conv2d_weight

from problem import Architecture

KERNEL = 5


@dataclass(frozen=True)
class Product:
    """One product of a step.

    Attributes:
        layer, kind: such as "dense 784-200" and "forward".
        flop: two per multiply-add; those with the zeros around an image do not count.
        compute: does it once.
    """

    layer: str
    kind: str
    flop: int
    compute: Callable[[], object]

    def __str__(self) -> str:
        return f"{self.layer}: {self.kind}"


def products(architecture: Architecture, batch: int) -> list[Product]:
    """All products of one step."""
    found, side = [], architecture.image[1]
    for inputs, outputs in architecture.channels:
        found.append(list(_convolution(batch, inputs, outputs, side, architecture.padding)))
        side = (side + 2 * architecture.padding - KERNEL + 1) // 2
    found += [list(_dense(batch, a, b)) for a, b in architecture.widths]
    # The last of each layer's three is the gradient of its input.
    return [*found[0][:-1], *(each for layer in found[1:] for each in layer)]


def _dense(batch: int, inputs: int, outputs: int) -> Iterator[Product]:
    x, weight = torch.randn(batch, inputs), torch.randn(outputs, inputs)
    bias, gradient = torch.randn(outputs), torch.randn(batch, outputs)
    product = partial(Product, f"dense {inputs}-{outputs}")
    flop = 2 * batch * inputs * outputs
    y, d_weight, d_x = map(torch.empty_like, (gradient, weight, x))
    # Into memory that is there: making room for a large gradient takes longer than the product.
    yield product("forward", flop, lambda: torch.addmm(bias, x, weight.t(), out=y))
    yield product("weight gradient", flop, lambda: torch.mm(gradient.t(), x, out=d_weight))
    yield product("input gradient", flop, lambda: torch.mm(gradient, weight, out=d_x))


def _convolution(
    batch: int, inputs: int, outputs: int, side: int, padding: int
) -> Iterator[Product]:
    x, weight = torch.randn(batch, inputs, side, side), torch.randn(outputs, inputs, KERNEL, KERNEL)
    bias = torch.randn(outputs)
    answer = functional.conv2d(x, weight, bias, padding=padding)
    gradient = torch.randn_like(answer)
    product = partial(Product, f"convolution {inputs}-{outputs} on {side} x {side}")
    # Along one side, entries within `padding` of an edge lose one tap to each step outside.
    taps = answer.shape[-1] * KERNEL - padding * (padding + 1)
    flop = 2 * batch * outputs * inputs * taps**2
    yield product("forward", flop, lambda: functional.conv2d(x, weight, bias, padding=padding))
    yield product(
        "weight gradient", flop, lambda: conv2d_weight(x, weight.shape, gradient, padding=padding)
    )
    yield product(
        "input gradient", flop, lambda: conv2d_input(x.shape, weight, gradient, padding=padding)
    )
