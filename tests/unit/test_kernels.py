"""The fused layer agrees with PyTorch's convolution, ReLU and pooling, forward and backward."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from clustered_fl.errors import InputError
from clustered_fl.models.kernels import conv_relu_pool

SHAPES = [  # channels, outputs, height, width
    (1, 6, 28, 28),
    (6, 16, 12, 12),
    (3, 6, 32, 32),
    (32, 32, 12, 12),
    (1, 2, 6, 6),
    (5, 4, 6, 14),
    (2, 2, 16, 8),
]


def literal(image, weight, bias):
    weighted = functional.conv2d(image.permute(3, 0, 1, 2), weight, bias)
    return functional.max_pool2d(functional.relu(weighted), 2).permute(1, 2, 3, 0)


def run(layer, image, weight, bias, grad):
    """Output and gradients of image, weight and bias, given the gradient of the output."""
    inputs = [tensor.clone().requires_grad_() for tensor in (image, weight, bias)]
    out = layer(*inputs)
    out.backward(grad)
    return [out.detach(), *(tensor.grad for tensor in inputs)]


def draw(shape, batch, seed, integers=False):
    """Arguments of a layer and a gradient of its output."""
    channels, outputs, height, width = shape
    sizes = (
        (channels, height, width, batch),
        (outputs, channels, 5, 5),
        (outputs,),
        (outputs, (height - 4) // 2, (width - 4) // 2, batch),
    )
    rng = np.random.default_rng(seed)
    if integers:
        # Few values, so that the largest entry of a window is often there several times, and sums
        # below 2^24, which are exact in any order.
        return [torch.from_numpy(rng.integers(-2, 3, size).astype(np.float32)) for size in sizes]
    return [torch.from_numpy(rng.standard_normal(size, dtype=np.float32)) for size in sizes]


def assert_same(found, expected, tolerance):
    for name, one, other in zip(("out", "image", "weight", "bias"), found, expected, strict=True):
        assert one.shape == other.shape, name
        assert (one - other).norm() <= tolerance * other.norm(), name


@pytest.mark.parametrize("batch", [1, 3, 16, 100])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_layer_equals_torch_to_rounding(shape, batch):
    arguments = draw(shape, batch, seed=batch)
    assert_same(run(conv_relu_pool, *arguments), run(literal, *arguments), 1e-5)


layers = st.tuples(
    st.integers(1, 4),
    st.integers(1, 4).map(lambda half: 2 * half),
    st.integers(3, 6).map(lambda half: 2 * half),
    st.integers(3, 6).map(lambda half: 2 * half),
)


@settings(max_examples=60)
@given(layers, st.integers(1, 35), st.integers(0, 2**32 - 1))
def test_layer_equals_torch_exactly_on_integers_also_with_ties(shape, batch, seed):
    arguments = draw(shape, batch, seed, integers=True)
    assert_same(run(conv_relu_pool, *arguments), run(literal, *arguments), 0.0)


def test_integers_are_tied_often():
    image, weight, bias, _ = draw((1, 2, 12, 12), 16, seed=0, integers=True)
    z = functional.conv2d(image.permute(3, 0, 1, 2), weight, bias)
    windows = functional.unfold(z.flatten(0, 1)[:, None], 2, stride=2)
    best = windows.max(1, keepdim=True).values
    assert (((windows == best).sum(1) > 1) & (best[:, 0] > 0)).float().mean() > 0.02


@pytest.mark.parametrize("bias", [-1.0, 0.0, 1.0])
@pytest.mark.parametrize("value", [0.0, 1.0, -1.0])
def test_constant_images_choose_the_same_entry_as_torch(value, bias):
    shape = (3, 6, 12, 12)
    image, weight, _, grad = draw(shape, 7, seed=0, integers=True)
    arguments = (torch.full_like(image, value), weight, torch.full((6,), bias), grad)
    assert_same(run(conv_relu_pool, *arguments), run(literal, *arguments), 0.0)


@pytest.mark.parametrize("order", [(1, 2, 3, 0), (1, 3, 2, 0), (0, 2, 1, 3)])
def test_image_need_not_be_contiguous(order):
    stored = torch.randn(6, 12, 12, 12, generator=torch.Generator().manual_seed(0))
    image = stored.permute(order)
    assert not image.is_contiguous()
    arguments = draw((image.shape[0], 4, *image.shape[1:3]), image.shape[3], seed=0)
    arguments[0] = image
    assert_same(run(conv_relu_pool, *arguments), run(literal, *arguments), 1e-5)


def test_gradient_need_not_be_contiguous():
    image, weight, bias, grad = draw((3, 4, 12, 12), 5, seed=0)
    turned = grad.permute(3, 2, 1, 0).contiguous().permute(3, 2, 1, 0)
    assert torch.equal(turned, grad)
    assert not turned.is_contiguous()
    found = run(conv_relu_pool, image, weight, bias, turned)
    assert_same(found, run(literal, image, weight, bias, grad), 1e-5)
    spread = torch.ones(()).expand(grad.shape)
    found = run(conv_relu_pool, image, weight, bias, spread)
    assert_same(found, run(literal, image, weight, bias, spread), 1e-5)


def test_arguments_are_left_as_they_are():
    arguments = draw((2, 4, 12, 12), 5, seed=0)
    before = [tensor.clone() for tensor in arguments]
    run(conv_relu_pool, *arguments)
    assert all(torch.equal(one, other) for one, other in zip(arguments, before, strict=True))


def test_image_without_gradient_gets_none():
    image, weight, bias, grad = draw((3, 4, 12, 12), 5, seed=0)
    weight.requires_grad_()
    conv_relu_pool(image, weight, bias).backward(grad)
    assert image.grad is None
    assert torch.equal(weight.grad, run(conv_relu_pool, image, weight.detach(), bias, grad)[2])


def test_results_do_not_depend_on_what_other_threads_do():
    cases = [draw((6, 16, 12, 12), batch, seed=batch) for batch in (1, 16, 37, 100)] * 5
    alone = [run(conv_relu_pool, *case) for case in cases]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda case: run(conv_relu_pool, *case), cases))
    for one, other in zip(alone, together, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def test_results_do_not_depend_on_the_number_of_threads():
    case, threads = draw((1, 6, 28, 28), 100, seed=0), torch.get_num_threads()
    one = run(conv_relu_pool, *case)
    try:
        torch.set_num_threads(3)
        three = run(conv_relu_pool, *case)
    finally:
        torch.set_num_threads(threads)
    assert all(torch.equal(a, b) for a, b in zip(one, three, strict=True))


def test_other_devices_use_torch():
    image, weight, bias, _ = (each.to("meta") for each in draw((3, 6, 32, 28), 5, seed=0))
    assert conv_relu_pool(image, weight, bias).shape == (6, 14, 12, 5)


@pytest.mark.parametrize("shape", [(1, 2, 7, 6), (1, 2, 6, 7), (1, 3, 6, 6)])
def test_odd_sides_and_outputs_are_refused(shape):
    image, weight, bias, _ = draw(shape, 3, seed=0)
    with pytest.raises(InputError, match="all three must be even"):
        conv_relu_pool(image, weight, bias)
