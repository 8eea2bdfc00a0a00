"""The fused layer agrees with PyTorch's convolution, ReLU and pooling, forward and backward."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from clustered_fl.engine import convolution_kernels as kernels
from clustered_fl.engine import pooling_kernels
from clustered_fl.engine import winograd_kernels as winograd
from clustered_fl.engine.convolution_kernels import MARGIN, TAPS, Images, Kernels
from clustered_fl.engine.vectors import LANES

SHAPES = [  # channels, outputs, height, width
    (1, 6, 28, 28),
    (6, 16, 12, 12),
    (3, 6, 32, 32),
    (32, 32, 12, 12),
    (1, 2, 6, 6),
    (2, 7, 8, 8),
    (5, 4, 6, 14),
    (2, 2, 16, 8),
]


def literal(image, weight, bias, grad, padding=0):
    """Output and gradients of image, weight and bias by PyTorch, given the output's gradient."""
    inputs = [tensor.clone().requires_grad_() for tensor in (image, weight, bias)]
    weighted = functional.conv2d(inputs[0].permute(3, 0, 1, 2), *inputs[1:], padding=padding)
    out = functional.max_pool2d(functional.relu(weighted), 2).permute(1, 2, 3, 0)
    out.backward(grad)
    return [out.detach(), *(tensor.grad for tensor in inputs)]


class Memory:
    """A flat array full of rubbish in which images are laid out one after the other."""

    def __init__(self):
        self.flat, self.end = np.full(2**22, np.nan, np.float32), 0

    def place(self, channels, height, width, margin, batch):
        """Room for images, with what surrounds them set to 0."""
        row = kernels.pitch(width, margin, batch)
        images = Images(self.flat, self.end, channels, height, width, margin, row)
        self.end += channels * height * row
        self.flat[images.first : self.end] = 0
        return images

    def view(self, images, batch):
        """[channels, height, width, batch] of the array."""
        shape = images.channels, images.height, images.pitch
        rows = self.flat[images.first : images.first + math.prod(shape)].reshape(shape)
        first, last = images.margin * batch, (images.margin + images.width) * batch
        return rows[:, :, first:last].reshape(*shape[:2], -1, batch)

    def put(self, images, values):
        """Copy `values` to the place of `images`."""
        batch, lines = values.shape[3], values.reshape(-1, values.shape[2] * values.shape[3])
        for n, line in enumerate(lines.numpy()):
            first = images.first + n * images.pitch + images.margin * batch
            self.flat[first : first + len(line)] = line


class Sums:
    """The functions of `winograd_kernels`, with scratch memory full of rubbish."""

    def __init__(self, channels, outputs, side, batch):
        self.used = winograd.room(channels, outputs, side, batch)
        self.scratch = np.full(self.used + LANES, np.nan, np.float32)

    def correlate(self, *arguments):
        winograd.correlate(*arguments, self.scratch)

    def weight_gradient(self, *arguments):
        winograd.weight_gradient(*arguments, self.scratch)


def run(image, weight, bias, grad, padding=0, by=kernels):
    """What `literal` gives, by our loops."""
    (channels, height, width, batch), outputs = image.shape, len(bias)
    side, values, slopes = 2 * padding - MARGIN, Memory(), Memory()
    sizes = (
        (channels, height, width, padding, batch),
        (outputs, height + side, width + side, MARGIN - padding, batch),
        (outputs, (height + side) // 2, (width + side) // 2, 1, batch),
    )
    images, dz, pooled = (values.place(*size) for size in sizes)
    slopes.flat, slopes.end = np.zeros_like(values.flat), values.end
    z, dx = dz._replace(margin=0), images._replace(buffer=slopes.flat)
    dz, dpooled = (each._replace(buffer=slopes.flat) for each in (dz, pooled))
    values.put(images, image)
    slopes.put(dpooled, grad)
    size = channels * TAPS**2
    flat = np.append(weight.contiguous().numpy(), np.full(LANES, np.nan, np.float32))
    forward = Kernels(flat, 0, outputs, size, TAPS**2, TAPS, 1)
    by.correlate(images, forward, bias.numpy(), batch, z)
    pooling_kernels.pool(z, batch, pooled)
    pooling_kernels.unpool(z, pooled, batch, dz)
    none = np.zeros(channels, np.float32)
    by.correlate(dz, Kernels(flat, 24, channels, TAPS**2, size, -TAPS, -1), none, batch, dx)
    dweight, dbias = np.empty(weight.shape, np.float32), np.empty(outputs, np.float32)
    by.weight_gradient(images, dz, batch, dweight)
    kernels.bias_gradient(dz, dbias)
    found = values.view(pooled, batch), slopes.view(dx, batch), dweight, dbias
    return [torch.from_numpy(part.copy()) for part in found]


def draw(shape, batch, seed, integers=False, padding=0):
    """Arguments of a layer and a gradient of its output."""
    channels, outputs, height, width = shape
    sizes = (
        (channels, height, width, batch),
        (outputs, channels, 5, 5),
        (outputs,),
        (outputs, (height - 4) // 2 + padding, (width - 4) // 2 + padding, batch),
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


@pytest.mark.parametrize("padding", [0, 1, 2])
@pytest.mark.parametrize("batch", [1, 3, 16, 100])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_layer_equals_torch_to_rounding(shape, batch, padding):
    arguments = draw(shape, batch, seed=batch, padding=padding)
    assert_same(run(*arguments, padding), literal(*arguments, padding), 1e-5)


@pytest.mark.parametrize("padding", [0, 1, 2])
@pytest.mark.parametrize("batch", [1, 3, 10, 50])
@pytest.mark.parametrize("shape", [(16, 16, 6, 6), (32, 64, 14, 14), (17, 20, 16, 10)], ids=str)
def test_sums_of_rows_give_the_layer_to_rounding_within_their_room(shape, batch, padding):
    arguments, by = draw(shape, batch, seed=batch, padding=padding), Sums(*shape[:3], batch)
    assert_same(run(*arguments, padding, by), literal(*arguments, padding), 1e-5)
    assert np.isnan(by.scratch[by.used :]).all()


def test_sums_of_rows_round_three_times_as_much_as_products():
    image, weight, bias, _ = draw((32, 64, 14, 14), 10, seed=0)
    exact = functional.conv2d(image.permute(3, 0, 1, 2).double(), weight.double(), bias.double())
    expected = functional.max_pool2d(functional.relu(exact), 2).permute(1, 2, 3, 0)
    grad = torch.zeros(expected.shape)
    direct = run(image, weight, bias, grad)[0] - expected
    sums = run(image, weight, bias, grad, by=Sums(32, 64, 14, 10))[0] - expected
    assert 1 < sums.norm() / direct.norm() < 5


@pytest.mark.parametrize("seed", range(5))
def test_minimal_filtering_is_a_correlation(seed):
    image, kernel, products = (each.astype(float) for each in winograd.factors())
    rng = np.random.default_rng(seed)
    x, w = rng.standard_normal(winograd.ROWS), rng.standard_normal(TAPS)
    found = products @ ((kernel @ w) * (image @ x))
    np.testing.assert_allclose(found, np.correlate(x, w, "valid"), rtol=0, atol=1e-5)


def test_only_layers_with_many_channels_and_outputs_are_computed_by_sums():
    layers = [(1, 32), (6, 16), (16, 6), (15, 64), (16, 16), (32, 64)]
    assert [winograd.pays(*layer) for layer in layers] == [False] * 4 + [True] * 2
    assert [winograd.room(*layer, 14, 10) > 0 for layer in layers] == [False] * 4 + [True] * 2


layers = st.tuples(
    st.integers(1, 7),
    st.integers(1, 7),
    st.integers(3, 6).map(lambda half: 2 * half),
    st.integers(3, 6).map(lambda half: 2 * half),
)


@settings(max_examples=60)
@given(layers, st.integers(1, 35), st.integers(0, 2**32 - 1), st.integers(0, 2))
def test_layer_equals_torch_exactly_on_integers_also_with_ties(shape, batch, seed, padding):
    arguments = draw(shape, batch, seed, integers=True, padding=padding)
    assert_same(run(*arguments, padding), literal(*arguments, padding), 0.0)


def test_integers_are_tied_often():
    image, weight, bias, _ = draw((1, 2, 12, 12), 16, seed=0, integers=True)
    z = functional.conv2d(image.permute(3, 0, 1, 2), weight, bias)
    windows = functional.unfold(z.flatten(0, 1)[:, None], 2, stride=2)
    best = windows.max(1, keepdim=True).values
    assert (((windows == best).sum(1) > 1) & (best[:, 0] > 0)).float().mean() > 0.02


@pytest.mark.parametrize("bias", [-1.0, 0.0, 1.0])
@pytest.mark.parametrize("value", [0.0, 1.0, -1.0])
def test_constant_images_choose_the_same_entry_as_torch(value, bias):
    image, weight, _, grad = draw((3, 6, 12, 12), 7, seed=0, integers=True)
    arguments = (torch.full_like(image, value), weight, torch.full((6,), bias), grad)
    assert_same(run(*arguments), literal(*arguments), 0.0)
