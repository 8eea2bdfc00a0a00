"""Dense layers on the CPU for small batches: products, ReLU, dropout, cross-entropy.

Arrays are [samples, units]. Their rows begin at multiples of `LANES` numbers and samples are filled
up to a multiple of `BLOCK`; what is filled up is 0 in every gradient, so no loop has a remainder.
Each loop works on two rows of weights and five samples: ten products per seven numbers read. For
ten samples that is as fast as a BLAS, and nothing has to be called from inside compiled code.
"""

import numpy as np
from numba import float32, njit
from numba.extending import register_jitable
from numpy import ndarray

from clustered_fl.models.dropout import WORD, mixed
from clustered_fl.models.numerics import NUMERICS

__numerics__ = NUMERICS

LANES = 16
"""Numbers in 64 bytes: a vector that crosses a cache line costs twice."""
BLOCK = 5
"""Samples that the loops work on at once."""

compiled = njit(fastmath=True, nogil=True, error_model="numpy")
hashed = compiled(mixed)


@register_jitable
def stride(units: int) -> int:
    """Numbers from one row to the next."""
    return -(-units // LANES) * LANES


@register_jitable
def filled(count: int) -> int:
    """Rows of a dense array for so many samples."""
    return -(-count // BLOCK) * BLOCK


@compiled
def dense(x: ndarray, weight: ndarray, bias: ndarray, out: ndarray) -> None:
    """Let `out` [B, O] be x [B, I] times the transposed weight [O, I], plus bias."""
    for o in range(0, weight.shape[0], 2):
        u, v = weight[o], weight[o + 1]
        for b in range(0, x.shape[0], BLOCK):
            x0, x1, x2, x3, x4 = x[b], x[b + 1], x[b + 2], x[b + 3], x[b + 4]
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
def _add_product(slope: ndarray, o: int, u: ndarray, v: ndarray, out: ndarray) -> None:
    """Add columns o and o + 1 of the slope [B, O] times the rows u and v [I] to `out` [B, I]."""
    for b in range(0, out.shape[0], BLOCK):
        x0, x1, x2, x3, x4 = out[b], out[b + 1], out[b + 2], out[b + 3], out[b + 4]
        a0, b0 = slope[b, o], slope[b, o + 1]
        a1, b1 = slope[b + 1, o], slope[b + 1, o + 1]
        a2, b2 = slope[b + 2, o], slope[b + 2, o + 1]
        a3, b3 = slope[b + 3, o], slope[b + 3, o + 1]
        a4, b4 = slope[b + 4, o], slope[b + 4, o + 1]
        for i in range(len(u)):
            x0[i] += a0 * u[i] + b0 * v[i]
            x1[i] += a1 * u[i] + b1 * v[i]
            x2[i] += a2 * u[i] + b2 * v[i]
            x3[i] += a3 * u[i] + b3 * v[i]
            x4[i] += a4 * u[i] + b4 * v[i]


@compiled
def input_gradient(slope: ndarray, weight: ndarray, out: ndarray) -> None:
    """Let `out` [B, I] be the slope [B, O] times the weight [O, I]."""
    out[:] = 0
    for o in range(0, weight.shape[0], 2):
        _add_product(slope, o, weight[o], weight[o + 1], out)


@compiled
def weight_gradient(x: ndarray, slope: ndarray, o: int, out: ndarray) -> None:
    """Let `out` [2, I] be columns o and o + 1 of the slope [B, O], transposed, times x [B, I]."""
    out[:] = 0
    p, q = out[0], out[1]
    for b in range(0, x.shape[0], BLOCK):
        x0, x1, x2, x3, x4 = x[b], x[b + 1], x[b + 2], x[b + 3], x[b + 4]
        a0, b0 = slope[b, o], slope[b, o + 1]
        a1, b1 = slope[b + 1, o], slope[b + 1, o + 1]
        a2, b2 = slope[b + 2, o], slope[b + 2, o + 1]
        a3, b3 = slope[b + 3, o], slope[b + 3, o + 1]
        a4, b4 = slope[b + 4, o], slope[b + 4, o + 1]
        for i in range(x.shape[1]):
            v0, v1, v2, v3, v4 = x0[i], x1[i], x2[i], x3[i], x4[i]
            p[i] += a0 * v0 + a1 * v1 + a2 * v2 + a3 * v3 + a4 * v4
            q[i] += b0 * v0 + b1 * v1 + b2 * v2 + b3 * v3 + b4 * v4


@njit(fastmath=True, nogil=True, error_model="numpy", cache=True)
def descend(
    x: ndarray,
    slope: ndarray,
    weight: ndarray,
    velocity: ndarray,
    scale: float,
    rate: float,
    momentum: float,
    out: ndarray,
) -> None:
    """A dense layer's input gradient and step of SGD in one pass over its weights.

    `x` [B, I] is the input and `slope` [B, O] the gradient of the output. `weight` [O, I] and with
    momentum `velocity` are trained in place; `scale` multiplies the weights' gradient. `out`
    becomes the gradient of the input [B, I] before the step; [0, I] if it is not wanted.
    """
    pair = np.empty((2, x.shape[1]), np.float32)
    out[:] = 0
    for o in range(0, weight.shape[0], 2):
        _add_product(slope, o, weight[o], weight[o + 1], out)
        weight_gradient(x, slope, o, pair)
        for n in range(2):
            row, gradient = weight[o + n], pair[n]
            if momentum > 0:
                moving = velocity[o + n]
                for i in range(len(row)):
                    moving[i] = momentum * moving[i] + scale * gradient[i]
                    row[i] -= rate * moving[i]
            else:
                for i in range(len(row)):
                    row[i] -= rate * (scale * gradient[i])


@compiled
def activate(z: ndarray, units: int, count: int, stream: int, dropout: float) -> None:
    """ReLU and, with a positive probability, dropout, in place."""
    lowest = round(dropout * 2**32)
    scale = float32(1 / (1 - dropout))
    for b in range(count):
        for i in range(units):
            z[b, i] = max(z[b, i], float32(0)) * scale
            if lowest > 0 and hashed((b * units + i + stream) & WORD) < lowest:
                z[b, i] = 0


@compiled
def deactivate(values: ndarray, slopes: ndarray, dropout: float) -> None:
    """Gradient before ReLU and dropout, in place: units that are 0 pass nothing on."""
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
