"""5 x 5 convolution on the CPU, forward and backward.

PyTorch's convolutions are optimised for more channels than the 1 to 16 of these papers. With the
samples of a batch as the innermost axis, each tap of a kernel multiplies one weight with a run of
`columns * batch` numbers. The run is processed in vectors, and sums stay in registers.

`Images` are stored in a flat buffer, rows `pitch` apart, padded left and right with as many zero
columns as a kernel reads there; rows above and below the image are skipped. The last vector of a
run may extend past its end, so each row has spare room, which is 0 in images and gradients.
"""

from typing import NamedTuple

from numba import float32
from numba.extending import register_jitable
from numpy import ndarray

from clustered_fl.engine.dense_kernels import compiled, stride
from clustered_fl.engine.vectors import LANES, fma, load, splat, spread, store, total
from clustered_fl.models.numerics import NUMERICS

__numerics__ = NUMERICS

TAPS = 5
MARGIN = TAPS - 1
BLOCK = 3
"""Outputs computed together: the sums of three outputs and four vectors stay in registers."""


class Images(NamedTuple):
    """[channels, height, width * batch] numbers in a flat buffer.

    Attributes:
        buffer: float32, flat.
        first: offset of the first row, including its zero columns.
        channels, height, width: of the images or gradients.
        margin: zero columns on each side.
        pitch: distance between two rows.
    """

    buffer: ndarray
    first: int
    channels: int
    height: int
    width: int
    margin: int
    pitch: int


class Kernels(NamedTuple):
    """Kernel weights [outputs, channels, rows, columns] in a flat buffer.

    Attributes:
        weights: float32, flat.
        first: offset of the weight of output 0, channel 0, row 0 and column 0.
        outputs: their number.
        output, channel, row: strides.
        column: stride, 1, or -1 for flipped kernels.
    """

    weights: ndarray
    first: int
    outputs: int
    output: int
    channel: int
    row: int
    column: int


@register_jitable
def pitch(width: int, margin: int, batch: int) -> int:
    """Distance between two rows: the padded width in whole vectors, and room for one more."""
    return stride((width + 2 * margin) * batch) + LANES


@compiled
def square(
    buffer: ndarray, first: int, channels: int, side: int, margin: int, batch: int
) -> Images:
    """Square images that begin at offset `first`."""
    return Images(buffer, first, channels, side, side, margin, pitch(side, margin, batch))


@compiled
def correlate(images: Images, kernels: Kernels, bias: ndarray, batch: int, result: Images) -> None:
    """Write the correlation of `images` with kernels, plus bias, to `result`.

    If the number of outputs is not a multiple of `BLOCK`, the last output is computed repeatedly.
    """
    for o in range(0, kernels.outputs, BLOCK):
        outputs = block(o, kernels.outputs)
        start = bias[outputs[0]], bias[outputs[1]], bias[outputs[2]]
        for y in range(result.height):
            seen = max(0, images.margin - y), min(TAPS, images.height + images.margin - y)
            first = images.first + (y - images.margin) * images.pitch
            what = images, kernels, outputs, start, seen, batch, result
            correlate_row(first, result.first + y * result.pitch, what)


@register_jitable
def block(first: int, outputs: int) -> tuple[int, int, int]:
    """`BLOCK` outputs from `first` on, the last one repeated if there are fewer."""
    return first, min(first + 1, outputs - 1), min(first + 2, outputs - 1)


@compiled
def correlate_row(first: int, row: int, what: tuple) -> None:
    """Compute the row of three outputs that begins at `row`; arguments are as in `_four`."""
    batch, result = what[5], what[6]
    run, place = result.width * batch, row + result.margin * batch
    for i in range(0, run, 4 * LANES):
        if run - i > 3 * LANES:
            _four(first + i, place + i, *what)
            continue
        for j in range(i, run, LANES):
            _one(first + j, place + j, *what)


@compiled
def _four(first, place, images, kernels, outputs, start, seen, batch, result):  # noqa: ANN001, ANN202
    """Compute four vectors of each of three outputs.

    Their sums begin at `start` and use kernel rows from `seen[0]` to before `seen[1]`.
    """
    (o, p, q), source, weights = outputs, images.buffer, kernels.weights
    a0 = a1 = a2 = a3 = splat(start[0])
    b0 = b1 = b2 = b3 = splat(start[1])
    c0 = c1 = c2 = c3 = splat(start[2])
    for channel in range(images.channels):
        for row in range(seen[0], seen[1]):
            i = first + (channel * images.height + row) * images.pitch
            k = kernels.first + channel * kernels.channel + row * kernels.row
            for _ in range(TAPS):
                x0, x1 = load(source, i), load(source, i + LANES)
                x2, x3 = load(source, i + 2 * LANES), load(source, i + 3 * LANES)
                u = spread(weights, k + o * kernels.output)
                a0, a1, a2, a3 = fma(u, x0, a0), fma(u, x1, a1), fma(u, x2, a2), fma(u, x3, a3)
                u = spread(weights, k + p * kernels.output)
                b0, b1, b2, b3 = fma(u, x0, b0), fma(u, x1, b1), fma(u, x2, b2), fma(u, x3, b3)
                u = spread(weights, k + q * kernels.output)
                c0, c1, c2, c3 = fma(u, x0, c0), fma(u, x1, c1), fma(u, x2, c2), fma(u, x3, c3)
                i, k = i + batch, k + kernels.column
    sums = (a0, b0, c0), (a1, b1, c1), (a2, b2, c2), (a3, b3, c3)
    for n in range(4):
        _put(sums[n], outputs, place + n * LANES, result)


@compiled
def _one(first, place, images, kernels, outputs, start, seen, batch, result):  # noqa: ANN001, ANN202
    """Compute one vector of each of three outputs."""
    (o, p, q), source, weights = outputs, images.buffer, kernels.weights
    a, b, c = splat(start[0]), splat(start[1]), splat(start[2])
    for channel in range(images.channels):
        for row in range(seen[0], seen[1]):
            i = first + (channel * images.height + row) * images.pitch
            k = kernels.first + channel * kernels.channel + row * kernels.row
            for _ in range(TAPS):
                x = load(source, i)
                a = fma(spread(weights, k + o * kernels.output), x, a)
                b = fma(spread(weights, k + p * kernels.output), x, b)
                c = fma(spread(weights, k + q * kernels.output), x, c)
                i, k = i + batch, k + kernels.column
    _put((a, b, c), outputs, place, result)


@compiled
def _put(sums, outputs, place, result):  # noqa: ANN001, ANN202
    """Write one vector of each of three outputs."""
    size, out = result.height * result.pitch, result.buffer
    store(out, place + outputs[0] * size, sums[0])
    store(out, place + outputs[1] * size, sums[1])
    store(out, place + outputs[2] * size, sums[2])


@compiled
def weight_gradient(images: Images, grad: Images, batch: int, out: ndarray) -> None:
    """Write the weight gradient to `out` [O, C, rows, 5]: products of `grad` and shifted images."""
    for o in range(0, grad.channels, BLOCK):
        outputs = block(o, grad.channels)
        for c in range(images.channels):
            for tap in range(out.shape[2]):
                rows = out[outputs[0], c, tap], out[outputs[1], c, tap], out[outputs[2], c, tap]
                _row_products(images, c, tap, grad, outputs, batch, rows)


@compiled
def _row_products(images, channel, tap, grad, outputs, batch, rows):  # noqa: ANN001, ANN202
    """Products of three outputs with one channel and kernel row, for its five columns."""
    a0 = a1 = a2 = a3 = a4 = splat(float32(0))
    b0 = b1 = b2 = b3 = b4 = splat(float32(0))
    c0 = c1 = c2 = c3 = c4 = splat(float32(0))
    shift, size = tap - images.margin, grad.height * grad.pitch
    values, slopes = images.buffer, grad.buffer
    for y in range(max(0, -shift), min(grad.height, images.height - shift)):
        start = images.first + (channel * images.height + y + shift) * images.pitch
        place = grad.first + y * grad.pitch + grad.margin * batch
        for i in range(0, grad.width * batch, LANES):
            x0, x1 = load(values, start + i), load(values, start + i + batch)
            x2, x3 = load(values, start + i + 2 * batch), load(values, start + i + 3 * batch)
            x4, u = load(values, start + i + 4 * batch), load(slopes, place + i + outputs[0] * size)
            a0, a1, a2, a3 = fma(u, x0, a0), fma(u, x1, a1), fma(u, x2, a2), fma(u, x3, a3)
            a4, u = fma(u, x4, a4), load(slopes, place + i + outputs[1] * size)
            b0, b1, b2, b3 = fma(u, x0, b0), fma(u, x1, b1), fma(u, x2, b2), fma(u, x3, b3)
            b4, u = fma(u, x4, b4), load(slopes, place + i + outputs[2] * size)
            c0, c1, c2, c3 = fma(u, x0, c0), fma(u, x1, c1), fma(u, x2, c2), fma(u, x3, c3)
            c4 = fma(u, x4, c4)
    sums = (a0, a1, a2, a3, a4), (b0, b1, b2, b3, b4), (c0, c1, c2, c3, c4)
    for n in range(BLOCK):
        for column in range(TAPS):
            rows[n][column] = total(sums[n][column])


@compiled
def bias_gradient(grad: Images, out: ndarray) -> None:
    """Write the sum of each output's gradients to `out` [O]."""
    size = grad.height * grad.pitch
    for o in range(grad.channels):
        found = splat(float32(0))
        for i in range(grad.first + o * size, grad.first + (o + 1) * size, LANES):
            found = fma(splat(float32(1)), load(grad.buffer, i), found)
        out[o] = total(found)
