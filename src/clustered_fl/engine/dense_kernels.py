"""Dense layers on the CPU for small batches: products, ReLU, dropout, cross-entropy.

Arrays are [samples, units]. Rows begin at multiples of `LANES` numbers, and samples are padded to a
multiple of `BLOCK`; the padding is 0 in every gradient, so no loop has a remainder. For ten samples
the loops are as fast as a BLAS, and compiled code needs no external calls.
"""

import numpy as np
from numba import float32, njit
from numba.extending import register_jitable
from numpy import ndarray

from clustered_fl.engine.update_kernels import Rule, Weights, step
from clustered_fl.engine.vectors import LANES, fetch, fma, load, splat, spread, store, total
from clustered_fl.models.dropout import WORD, mixed
from clustered_fl.models.numerics import NUMERICS

__numerics__ = NUMERICS

BLOCK = 5
"""Samples that `dense` processes together."""
ROWS = 4
"""Outputs that `descend` processes together."""
HELD = 2**16
"""Weights that `dense` applies to all samples before loading the next. They fit into the
second-level cache, and `BLOCK` samples into the first."""
WIDE = 1024
"""Inputs beyond which `BLOCK` samples do not fit into the first-level cache."""
AHEAD = 4 * LANES
"""How far ahead of a step on wide layers its weights are fetched."""
COLUMNS = 2**15
"""Inputs of all samples together that `descend` processes at once. With their gradients they fit
into the second-level cache, and ten samples of 3,136 inputs need a single pass over the outputs."""


compiled = njit(fastmath=True, nogil=True, error_model="numpy")
mixed = compiled(mixed)


@register_jitable
def stride(units: int) -> int:
    """Length of a row of `units` numbers with its padding."""
    return -(-units // (2 * LANES)) * 2 * LANES


@register_jitable
def filled(count: int) -> int:
    """Number of rows for `count` samples with padding."""
    return -(-count // BLOCK) * BLOCK


@register_jitable
def grouped(outputs: int) -> int:
    """Number of rows of a weight matrix for `outputs` outputs with padding."""
    return -(-outputs // ROWS) * ROWS


@compiled
def dense(x: ndarray, weight: ndarray, bias: ndarray, out: ndarray) -> None:
    """Write x [B, I] times the transposed weight [O, I], plus bias, to `out` [B, O]."""
    if x.shape[1] > WIDE:
        _wide(x, weight.ravel(), bias, out)
    else:
        _narrow(x, weight, bias, out)


@compiled
def _narrow(x: ndarray, weight: ndarray, bias: ndarray, out: ndarray) -> None:
    """As `dense`, with ten sums.

    LLVM chooses the vector width here: ten sums of `LANES` numbers would not fit into the registers
    of a processor without AVX-512.
    """
    outputs, part = len(weight), max(2, HELD // x.shape[1] // 2 * 2)
    for begin in range(0, outputs, part):
        for b in range(0, len(x), BLOCK):
            x0, x1, x2, x3, x4 = x[b], x[b + 1], x[b + 2], x[b + 3], x[b + 4]
            for o in range(begin, min(begin + part, outputs), 2):
                u, v = weight[o], weight[o + 1]
                s0 = s1 = s2 = s3 = s4 = bias[o]
                t0 = t1 = t2 = t3 = t4 = bias[o + 1]
                for i in range(x.shape[1]):
                    s0 += u[i] * x0[i]
                    s1 += u[i] * x1[i]
                    s2 += u[i] * x2[i]
                    s3 += u[i] * x3[i]
                    s4 += u[i] * x4[i]
                    t0 += v[i] * x0[i]
                    t1 += v[i] * x1[i]
                    t2 += v[i] * x2[i]
                    t3 += v[i] * x3[i]
                    t4 += v[i] * x4[i]
                out[b, o], out[b, o + 1] = s0, t0
                out[b + 1, o], out[b + 1, o + 1] = s1, t1
                out[b + 2, o], out[b + 2, o + 1] = s2, t2
                out[b + 3, o], out[b + 3, o + 1] = s3, t3
                out[b + 4, o], out[b + 4, o + 1] = s4, t4


@compiled
def _wide(x: ndarray, weight: ndarray, bias: ndarray, out: ndarray) -> None:
    """As `dense`, with 20 sums, so that samples are loaded half as often, from a slower cache."""
    width, values, zero = x.shape[1], x.ravel(), splat(float32(0))
    for o in range(0, len(weight) // width, ROWS):
        for b in range(0, len(x), BLOCK):
            a0 = a1 = a2 = a3 = a4 = b0 = b1 = b2 = b3 = b4 = zero
            c0 = c1 = c2 = c3 = c4 = d0 = d1 = d2 = d3 = d4 = zero
            for i in range(0, width, LANES):
                p, q = b * width + i, o * width + i
                x0, x1, x2 = load(values, p), load(values, p + width), load(values, p + 2 * width)
                x3, x4 = load(values, p + 3 * width), load(values, p + 4 * width)
                u, v = load(weight, q), load(weight, q + width)
                a0, a1, a2, a3 = fma(u, x0, a0), fma(u, x1, a1), fma(u, x2, a2), fma(u, x3, a3)
                b0, b1, b2, b3 = fma(v, x0, b0), fma(v, x1, b1), fma(v, x2, b2), fma(v, x3, b3)
                a4, b4 = fma(u, x4, a4), fma(v, x4, b4)
                u, v = load(weight, q + 2 * width), load(weight, q + 3 * width)
                c0, c1, c2, c3 = fma(u, x0, c0), fma(u, x1, c1), fma(u, x2, c2), fma(u, x3, c3)
                d0, d1, d2, d3 = fma(v, x0, d0), fma(v, x1, d1), fma(v, x2, d2), fma(v, x3, d3)
                c4, d4 = fma(u, x4, c4), fma(v, x4, d4)
            ab = a0, a1, a2, a3, a4, b0, b1, b2, b3, b4
            cd = c0, c1, c2, c3, c4, d0, d1, d2, d3, d4
            for n in range(2 * BLOCK):
                row, output = b + n % BLOCK, o + n // BLOCK
                out[row, output] = bias[output] + total(ab[n])
                out[row, output + 2] = bias[output + 2] + total(cd[n])


@compiled
def descend(
    x: ndarray,
    slope: ndarray,
    weights: Weights,
    place: tuple[int, int],
    rule: Rule,
    out: ndarray,
) -> None:
    """A dense layer's input gradient and step in one pass over its weights.

    `x` [B, I] is the input and `slope` [B, O or more] the gradient of the output. `place` is where
    the layer's weights [O, I] begin, and O. `out` receives the input's gradient [B, I] before
    the step; pass [0, I] to skip it. I is a multiple of `2 * LANES` and O of `ROWS`.
    """
    inputs, back, width = x.ravel(), out.ravel(), x.shape[1]
    slopes = slope.ravel(), slope.shape[0], slope.shape[1]
    (first, outputs), wanted = place, len(out) > 0
    part = max(1, COLUMNS // len(x) // (2 * LANES)) * 2 * LANES
    back[:] = 0
    for begin in range(0, width, part):
        for o in range(0, outputs, ROWS):
            for i in range(begin, min(begin + part, width), 2 * LANES):
                here = first + o * width + i
                if width > WIDE:
                    _fetch(weights, here + AHEAD, width, rule)
                if wanted:
                    _pass_on(slopes, o, weights.parameters, here, width, back, i)
                gradients = _gradients(slopes, o, inputs, width, i)
                for n in range(ROWS):
                    step(weights, here + n * width, gradients[2 * n], rule)
                    step(weights, here + n * width + LANES, gradients[2 * n + 1], rule)


@compiled
def _fetch(weights: Weights, place: int, width: int, rule: Rule) -> None:
    """Fetch what a step on `ROWS` outputs and two vectors of inputs reads."""
    for n in range(ROWS):
        for i in (place + n * width, place + n * width + LANES):
            fetch(weights.parameters, i)
            if rule.momentum > 0:
                fetch(weights.first, i)


@compiled
def _gradients(slopes: tuple[ndarray, int, int], o: int, x: ndarray, width: int, i: int):  # noqa: ANN202
    """Gradients of the weights between `ROWS` outputs and two vectors of inputs, from `i` on.

    `slopes` are a flat array, the number of samples, and the distance between two samples.
    """
    a0 = a1 = b0 = b1 = c0 = c1 = d0 = d1 = splat(float32(0))
    slope, samples, step = slopes
    for _ in range(samples):
        x0, x1 = load(x, i), load(x, i + LANES)
        u, v = spread(slope, o), spread(slope, o + 1)
        a0, a1, b0, b1 = fma(u, x0, a0), fma(u, x1, a1), fma(v, x0, b0), fma(v, x1, b1)
        u, v = spread(slope, o + 2), spread(slope, o + 3)
        c0, c1, d0, d1 = fma(u, x0, c0), fma(u, x1, c1), fma(v, x0, d0), fma(v, x1, d1)
        i, o = i + width, o + step
    return a0, a1, b0, b1, c0, c1, d0, d1


@compiled
def _pass_on(slopes, o, weights, place, width, out, i):  # noqa: ANN001, ANN202
    """Add the contribution of these outputs to the gradient of these inputs."""
    a0, a1 = load(weights, place), load(weights, place + LANES)
    b0, b1 = load(weights, place + width), load(weights, place + width + LANES)
    c0, c1 = load(weights, place + 2 * width), load(weights, place + 2 * width + LANES)
    d0, d1 = load(weights, place + 3 * width), load(weights, place + 3 * width + LANES)
    slope, samples, step = slopes
    for _ in range(samples):
        u, v = spread(slope, o), spread(slope, o + 1)
        x0 = fma(v, b0, fma(u, a0, load(out, i)))
        x1 = fma(v, b1, fma(u, a1, load(out, i + LANES)))
        u, v = spread(slope, o + 2), spread(slope, o + 3)
        store(out, i, fma(v, d0, fma(u, c0, x0)))
        store(out, i + LANES, fma(v, d1, fma(u, c1, x1)))
        i, o = i + width, o + step


@compiled
def activate(z: ndarray, units: int, count: int, stream: int, dropout: float) -> None:
    """ReLU and, with a positive probability, dropout, in place."""
    lowest = round(dropout * 2**32)
    scale = float32(1 / (1 - dropout))
    for b in range(count):
        for i in range(units):
            z[b, i] = max(z[b, i], float32(0)) * scale
            if lowest > 0 and mixed((b * units + i + stream) & WORD) < lowest:
                z[b, i] = 0


@compiled
def deactivate(values: ndarray, slopes: ndarray, dropout: float) -> None:
    """Backward of `activate` in place: units whose value is 0 get gradient 0."""
    scale = float32(1 / (1 - dropout))
    for b in range(values.shape[0]):
        for i in range(values.shape[1]):
            slopes[b, i] *= scale * float32(values[b, i] > 0)


@compiled
def cross_entropy(scores: ndarray, targets: ndarray, classes: int, slope: ndarray) -> float:
    """Summed cross-entropy; `slope` becomes the gradient of the mean, 0 for absent samples."""
    count, loss = len(targets), 0.0
    slope[count:] = 0
    for b in range(count):
        top = scores[b, :classes].max()
        for k in range(classes):
            slope[b, k] = np.exp(scores[b, k] - top)
        total = slope[b, :classes].sum()
        loss += np.log(total) + top - scores[b, targets[b]]
        for k in range(classes):
            slope[b, k] /= total * count
        slope[b, targets[b]] -= float32(1 / count)
    return loss
