"""5 x 5 convolution, ReLU and 2 x 2 max-pooling for few channels on the CPU, forward and backward.

PyTorch's convolutions are made for more channels than the 1 to 32 of these papers. With the samples
of a batch as the innermost axis, every tap of the kernel is a product of one weight with a
contiguous run of `width * batch` numbers, which compiles to plain vector code
(`benchmarks/convolution.py`). The results agree with PyTorch's to rounding.
"""

import llvmlite.binding
import torch
from numba import float32, njit
from numpy import ndarray
from torch import Tensor
from torch.nn import functional

from clustered_fl.errors import InputError
from clustered_fl.models.numerics import NUMERICS

__numerics__ = NUMERICS

TAPS = 5
MARGIN = TAPS - 1
"""Columns of 0 on both sides of a gradient: its correlation needs no case for the borders."""

# The loops below write two rows and read five: LLVM vectorises them only if allowed that many
# overlap tests.
llvmlite.binding.set_option("kernels", "--runtime-memory-check-threshold=64")


@njit(fastmath=True, nogil=True, cache=True)
def correlate(image: ndarray, weight: ndarray, top: int, batch: int, out: ndarray) -> None:
    """Add to `out` [O, h, w * batch] the correlation of `image` with `weight` [O, C, 5, 5].

    Row y of `out` sees rows y - top ... y - top + 4 of `image` [C, H, W * batch], 0 outside it.
    """
    run = out.shape[2]
    for y in range(out.shape[1]):
        for c in range(image.shape[0]):
            for tap in range(max(0, top - y), min(TAPS, image.shape[1] + top - y)):
                row = image[c, y - top + tap]
                x0, x1 = row[:run], row[batch : batch + run]
                x2, x3 = row[2 * batch : 2 * batch + run], row[3 * batch : 3 * batch + run]
                x4 = row[4 * batch : 4 * batch + run]
                for o in range(0, out.shape[0], 2):
                    a0, a1, a2, a3, a4 = weight[o, c, tap]
                    b0, b1, b2, b3, b4 = weight[o + 1, c, tap]
                    a, b = out[o, y], out[o + 1, y]
                    for j in range(run):
                        v0, v1, v2, v3, v4 = x0[j], x1[j], x2[j], x3[j], x4[j]
                        a[j] += a0 * v0 + a1 * v1 + a2 * v2 + a3 * v3 + a4 * v4
                        b[j] += b0 * v0 + b1 * v1 + b2 * v2 + b3 * v3 + b4 * v4


@njit(fastmath=True, nogil=True, cache=True)
def weight_gradient(image: ndarray, grad: ndarray, batch: int, out: ndarray) -> None:
    """Add to `out` [O, C, 5, 5] the products of `grad` and shifted `image` [C, H, W * batch].

    The gradient is [O, h, (w + 2 * MARGIN) * batch].
    """
    left = MARGIN * batch
    run = grad.shape[2] - 2 * left
    for y in range(grad.shape[1]):
        for c in range(image.shape[0]):
            for tap in range(TAPS):
                row = image[c, y + tap]
                x0, x1 = row[:run], row[batch : batch + run]
                x2, x3 = row[2 * batch : 2 * batch + run], row[3 * batch : 3 * batch + run]
                x4 = row[4 * batch : 4 * batch + run]
                for o in range(0, grad.shape[0], 2):
                    g, h = grad[o, y, left : left + run], grad[o + 1, y, left : left + run]
                    s0 = s1 = s2 = s3 = s4 = float32(0)
                    t0 = t1 = t2 = t3 = t4 = float32(0)
                    for j in range(run):
                        u, v = g[j], h[j]
                        s0 += u * x0[j]
                        s1 += u * x1[j]
                        s2 += u * x2[j]
                        s3 += u * x3[j]
                        s4 += u * x4[j]
                        t0 += v * x0[j]
                        t1 += v * x1[j]
                        t2 += v * x2[j]
                        t3 += v * x3[j]
                        t4 += v * x4[j]
                    a, b = out[o, c, tap], out[o + 1, c, tap]
                    a[0] += s0
                    a[1] += s1
                    a[2] += s2
                    a[3] += s3
                    a[4] += s4
                    b[0] += t0
                    b[1] += t1
                    b[2] += t2
                    b[3] += t3
                    b[4] += t4


@njit(fastmath=True, nogil=True, cache=True)
def pool(z: ndarray, batch: int, out: ndarray) -> None:
    """Largest of 0 and each 2 x 2 window of `z` [O, h, w * batch]; `out` has half the sides."""
    for o in range(out.shape[0]):
        for y in range(out.shape[1]):
            for x in range(out.shape[2] // batch):
                left, right, end = 2 * x * batch, (2 * x + 1) * batch, (2 * x + 2) * batch
                a, b = z[o, 2 * y, left:right], z[o, 2 * y, right:end]
                c, d = z[o, 2 * y + 1, left:right], z[o, 2 * y + 1, right:end]
                p = out[o, y, x * batch : (x + 1) * batch]
                for j in range(batch):
                    p[j] = max(max(max(a[j], b[j]), max(c[j], d[j])), float32(0))


@njit(fastmath=True, nogil=True, cache=True)
def unpool(z: ndarray, pooled: ndarray, grad: ndarray, batch: int, out: ndarray) -> None:
    """Pass each window's gradient to its first maximum, unless ReLU cut it; `out` has a margin."""
    margin = MARGIN * batch
    for o in range(grad.shape[0]):
        for y in range(grad.shape[1]):
            for x in range(grad.shape[2] // batch):
                left, right, end = 2 * x * batch, (2 * x + 1) * batch, (2 * x + 2) * batch
                a, b = z[o, 2 * y, left:right], z[o, 2 * y, right:end]
                c = z[o, 2 * y + 1, left:right]
                p = pooled[o, y, x * batch : (x + 1) * batch]
                left, right, end = left + margin, right + margin, end + margin
                ga, gb = out[o, 2 * y, left:right], out[o, 2 * y, right:end]
                gc, gd = out[o, 2 * y + 1, left:right], out[o, 2 * y + 1, right:end]
                g = grad[o, y, x * batch : (x + 1) * batch]
                for j in range(batch):
                    # Products instead of conditions, because no processor can predict these.
                    rest = g[j] * float32(p[j] > 0)
                    ga[j] = rest * float32(a[j] == p[j])
                    rest = rest - ga[j]
                    gb[j] = rest * float32(b[j] == p[j])
                    rest = rest - gb[j]
                    gc[j] = rest * float32(c[j] == p[j])
                    gd[j] = rest - gc[j]


@njit(fastmath=True, nogil=True, cache=True)
def flip(weight: ndarray, out: ndarray) -> None:
    """Copy `weight` [O, C, 5, 5] to `out` [C or more, O, 5, 5], upside down and left to right."""
    for o in range(weight.shape[0]):
        for c in range(weight.shape[1]):
            for y in range(TAPS):
                for x in range(TAPS):
                    out[c, o, y, x] = weight[o, c, TAPS - 1 - y, TAPS - 1 - x]


def even(number: int) -> int:
    """The next even number: the loops write two rows at a time."""
    return number + number % 2


def _image_gradient(dz: Tensor, weight: Tensor, image: Tensor, batch: int) -> Tensor:
    channels = len(image)
    flipped = torch.zeros(even(channels), len(weight), TAPS, TAPS)
    flip(weight.detach().numpy(), flipped.numpy())
    out = torch.zeros(even(channels), *image.shape[1:])
    correlate(dz.numpy(), flipped.numpy(), TAPS - 1, batch, out.numpy())
    return out[:channels].view(channels, image.shape[1], -1, batch)


class _ConvReluPool(torch.autograd.Function):
    """The fused layer on [C, H, W, batch]; see `conv_relu_pool`."""

    @staticmethod
    def forward(ctx, image: Tensor, weight: Tensor, bias: Tensor) -> Tensor:  # noqa: ANN001
        channels, height, width, batch = image.shape
        rows, columns = height - TAPS + 1, width - TAPS + 1
        z = bias.detach()[:, None, None].expand(-1, rows, columns * batch).contiguous()
        flat = image.detach().reshape(channels, height, width * batch)
        correlate(flat.numpy(), weight.detach().numpy(), 0, batch, z.numpy())
        pooled = torch.empty(len(bias), rows // 2, columns // 2 * batch)
        pool(z.numpy(), batch, pooled.numpy())
        ctx.save_for_backward(flat, weight, z, pooled)
        ctx.batch = batch
        return pooled.view(len(bias), rows // 2, columns // 2, batch)

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor | None, Tensor, Tensor]:  # noqa: ANN001
        flat, weight, z, pooled = ctx.saved_tensors
        batch = ctx.batch
        dz = torch.zeros(*z.shape[:2], z.shape[2] + 2 * MARGIN * batch)
        unpool(z.numpy(), pooled.numpy(), grad.reshape(pooled.shape).numpy(), batch, dz.numpy())
        dweight = torch.zeros_like(weight)
        weight_gradient(flat.numpy(), dz.numpy(), batch, dweight.numpy())
        dimage = _image_gradient(dz, weight, flat, batch) if ctx.needs_input_grad[0] else None
        return dimage, dweight, dz.sum((1, 2))


def conv_relu_pool(image: Tensor, weight: Tensor, bias: Tensor, direct: bool = True) -> Tensor:
    """5 x 5 convolution without padding, ReLU, 2 x 2 max-pooling; samples are the last axis.

    Args:
        image, weight, bias: [channels, height, width, batch], [outputs, channels, 5, 5], [outputs].
        direct: use the loops above where the image is on a CPU; else PyTorch's operations.
    Returns: [outputs, (height - 4) / 2, (width - 4) / 2, batch].
    Raises: InputError if height, width or the number of outputs is odd.
    """
    if image.shape[1] % 2 or image.shape[2] % 2 or len(bias) % 2:
        raise InputError(
            f"5 x 5 convolution with pooling of {image.shape[1]} x {image.shape[2]} images to "
            f"{len(bias)} channels; all three must be even"
        )
    if direct and image.device.type == "cpu":
        return _ConvReluPool.apply(image.contiguous(), weight, bias)
    first = functional.conv2d(image.permute(3, 0, 1, 2), weight, bias)
    return functional.max_pool2d(functional.relu(first), 2).permute(1, 2, 3, 0)
