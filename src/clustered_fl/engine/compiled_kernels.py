"""A client's epoch of SGD as one compiled call: `engine.compiled` prepares its arguments.

Layers are convolutions (the loops of `models.kernels`) and then dense layers. Activations of dense
layers are [batch, units] with the units contiguous, those of convolutions [channels, height,
width * batch]. Rows of dense arrays begin at multiples of `LANES` numbers and the batch is filled
up to a multiple of `BLOCK`; what is filled up is 0 in every gradient, so no loop has a remainder.
"""

from typing import NamedTuple

import numpy as np
from numba import float32, njit
from numpy import ndarray

from clustered_fl.models.dropout import FIRST, SECOND, WORD
from clustered_fl.models.kernels import MARGIN, TAPS, correlate, flip, pool, unpool
from clustered_fl.models.kernels import weight_gradient as conv_weight_gradient

LANES = 16
"""Numbers in 64 bytes: a vector that crosses a cache line costs twice."""
BLOCK = 5
"""Samples that the dense loops work on at once: ten products per seven numbers read."""

LAYER = np.dtype(
    [
        (name, np.int64)
        for name in (
            "inputs",  # channels or units
            "outputs",
            "side",  # of the input image; 0 says that the layer is dense
            "weight",  # where each begins in the parameters
            "bias",
            "input",  # where each begins in the activations and in their gradients
            "z",  # a convolution before ReLU and pooling
            "output",
        )
    ]
)


class Buffers(NamedTuple):
    """Flat float32 arrays of one worker, each beginning at a multiple of 64 bytes.

    Attributes:
        parameters, velocity, start: the model, its momentum, and where it began.
        values, slopes: activations of one batch and the gradients of the loss by them.
        scratch: for one layer's weight gradient or flipped kernels.
    """

    parameters: ndarray
    velocity: ndarray
    start: ndarray
    values: ndarray
    slopes: ndarray
    scratch: ndarray


class Data(NamedTuple):
    """Images uint8 [N, pixels], and what a pixel becomes: value * scale - shift, in float32."""

    images: ndarray
    scale: float
    shift: float


class Rule(NamedTuple):
    """Of SGD: learning rate, momentum, FedProx's mu, and the probability of dropping a unit."""

    rate: float
    momentum: float
    proximal: float
    dropout: float


_compile = njit(fastmath=True, nogil=True, cache=True, error_model="numpy")


@_compile
def stride(units: int) -> int:
    """Numbers from one row to the next."""
    return -(-units // LANES) * LANES


@_compile
def _filled(count: int) -> int:
    """Rows of a dense array for so many samples."""
    return -(-count // BLOCK) * BLOCK


@_compile
def _rows(buffer: ndarray, start: int, rows: int, units: int) -> ndarray:
    """[rows, stride(units)] of a flat buffer."""
    width = stride(units)
    return buffer[start : start + rows * width].reshape((rows, width))


@_compile
def _image(buffer: ndarray, start: int, channels: int, height: int, row: int) -> ndarray:
    """[channels, height, row] of a flat buffer."""
    size = channels * height * row
    return buffer[start : start + size].reshape((channels, height, row))


@_compile
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


@_compile
def input_gradient(slope: ndarray, weight: ndarray, out: ndarray) -> None:
    """Let `out` [B, I] be the slope [B, O] times the weight [O, I]."""
    out[:] = 0
    for o in range(0, weight.shape[0], 2):
        u, v = weight[o], weight[o + 1]
        for b in range(0, out.shape[0], BLOCK):
            x0, x1, x2, x3, x4 = out[b], out[b + 1], out[b + 2], out[b + 3], out[b + 4]
            a0, b0 = slope[b, o], slope[b, o + 1]
            a1, b1 = slope[b + 1, o], slope[b + 1, o + 1]
            a2, b2 = slope[b + 2, o], slope[b + 2, o + 1]
            a3, b3 = slope[b + 3, o], slope[b + 3, o + 1]
            a4, b4 = slope[b + 4, o], slope[b + 4, o + 1]
            for i in range(weight.shape[1]):
                x0[i] += a0 * u[i] + b0 * v[i]
                x1[i] += a1 * u[i] + b1 * v[i]
                x2[i] += a2 * u[i] + b2 * v[i]
                x3[i] += a3 * u[i] + b3 * v[i]
                x4[i] += a4 * u[i] + b4 * v[i]


@_compile
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


@_compile
def _step(buffers: Buffers, first: int, gradient: ndarray, rule: Rule) -> None:
    """SGD on the parameters from `first`, in place; `gradient` is spent."""
    size = len(gradient)
    parameters = buffers.parameters[first : first + size]
    if rule.proximal > 0:
        start = buffers.start[first : first + size]
        for i in range(size):
            gradient[i] += rule.proximal * (parameters[i] - start[i])
    if rule.momentum > 0:
        velocity = buffers.velocity[first : first + size]
        for i in range(size):
            velocity[i] = rule.momentum * velocity[i] + gradient[i]
            parameters[i] -= rule.rate * velocity[i]
    else:
        for i in range(size):
            parameters[i] -= rule.rate * gradient[i]


@_compile
def _gather(data: Data, rows: ndarray, layer, values: ndarray) -> None:  # noqa: ANN001
    """Put the normalised images of a batch where the first layer reads them."""
    pixels, count = data.images.shape[1], len(rows)
    if layer.side == 0:
        out = _rows(values, layer.input, _filled(count), pixels)
        out[count:] = 0
        for b in range(count):
            for i in range(pixels):
                out[b, i] = float32(data.images[rows[b], i]) * data.scale - data.shift
        return
    image = values[layer.input : layer.input + pixels * count].reshape((pixels, count))
    for b in range(count):
        for i in range(pixels):
            image[i, b] = float32(data.images[rows[b], i]) * data.scale - data.shift


@_compile
def _kernels(buffer: ndarray, start: int, outputs: int, inputs: int) -> ndarray:
    """[outputs, inputs, 5, 5] of a flat buffer."""
    size = outputs * inputs * TAPS * TAPS
    return buffer[start : start + size].reshape((outputs, inputs, TAPS, TAPS))


@_compile
def _convolve(layer, buffers: Buffers, count: int) -> None:  # noqa: ANN001
    """Convolution, ReLU and pooling."""
    side, rows, outputs = layer.side, layer.side - TAPS + 1, layer.outputs
    image = _image(buffers.values, layer.input, layer.inputs, side, side * count)
    weight = _kernels(buffers.parameters, layer.weight, outputs, layer.inputs)
    z = _image(buffers.values, layer.z, outputs, rows, rows * count)
    for o in range(outputs):
        z[o] = buffers.parameters[layer.bias + o]
    correlate(image, weight, 0, count, z)
    half = rows // 2
    pool(z, count, _image(buffers.values, layer.output, outputs, half, half * count))


@_compile
def _unpool(layer, buffers: Buffers, count: int) -> ndarray:  # noqa: ANN001
    """Gradient before ReLU and pooling [outputs, rows, (columns + 2 * MARGIN) * count]."""
    rows, outputs = layer.side - TAPS + 1, layer.outputs
    half, margin = rows // 2, MARGIN * count
    z = _image(buffers.values, layer.z, outputs, rows, rows * count)
    pooled = _image(buffers.values, layer.output, outputs, half, half * count)
    slope = _image(buffers.slopes, layer.output, outputs, half, half * count)
    dz = _image(buffers.slopes, layer.z, outputs, rows, rows * count + 2 * margin)
    dz[:, :, :margin] = 0
    dz[:, :, rows * count + margin :] = 0
    unpool(z, pooled, slope, count, dz)
    return dz


@_compile
def _convolve_back(layer, buffers: Buffers, count: int, rule: Rule, first: bool) -> None:  # noqa: ANN001
    """Gradient of the input, unless the layer is the first, and then a step of the layer."""
    side, outputs, inputs = layer.side, layer.outputs, layer.inputs
    dz = _unpool(layer, buffers, count)
    if not first:
        channels = inputs + inputs % 2  # rows are written in pairs
        flipped = _kernels(buffers.scratch, 0, channels, outputs)
        flipped[:] = 0
        flip(_kernels(buffers.parameters, layer.weight, outputs, inputs), flipped)
        slope = _image(buffers.slopes, layer.input, channels, side, side * count)
        slope[:] = 0
        correlate(dz, flipped, TAPS - 1, count, slope)
    gradient = _kernels(buffers.scratch, 0, outputs, inputs)
    gradient[:] = 0
    image = _image(buffers.values, layer.input, inputs, side, side * count)
    conv_weight_gradient(image, dz, count, gradient)
    _step(buffers, layer.weight, gradient.ravel(), rule)
    bias = buffers.scratch[:outputs]
    for o in range(outputs):
        bias[o] = dz[o].sum()
    _step(buffers, layer.bias, bias, rule)


@_compile
def _flatten(layer, after, buffers: Buffers, count: int) -> None:  # noqa: ANN001
    """Bring the output of the last convolution to the first dense layer."""
    image = buffers.values[layer.output : layer.output + after.inputs * count]
    x = _rows(buffers.values, after.input, _filled(count), after.inputs)
    x[count:] = 0
    x[:count, : after.inputs] = image.reshape((after.inputs, count)).T


@_compile
def _flatten_back(layer, after, buffers: Buffers, count: int) -> None:  # noqa: ANN001
    """Bring the gradient of the first dense layer's input to the last convolution."""
    image = buffers.slopes[layer.output : layer.output + after.inputs * count]
    slope = _rows(buffers.slopes, after.input, count, after.inputs)
    image.reshape((after.inputs, count))[:] = slope[:, : after.inputs].T


@_compile
def _connect(layer, buffers: Buffers, batch: int) -> ndarray:  # noqa: ANN001
    """A dense layer before its ReLU, [batch, stride(outputs)]."""
    outputs = layer.outputs + layer.outputs % 2
    x = _rows(buffers.values, layer.input, batch, layer.inputs)
    weight = _rows(buffers.parameters, layer.weight, outputs, layer.inputs)
    out = _rows(buffers.values, layer.output, batch, layer.outputs)
    dense(x, weight, buffers.parameters[layer.bias : layer.bias + outputs], out)
    return out


@_compile
def _connect_back(layer, buffers: Buffers, batch: int, rule: Rule, first: bool) -> None:  # noqa: ANN001
    """Gradient of the input, unless the layer is the first, and then a step of the layer."""
    outputs, inputs, width = layer.outputs, layer.inputs, stride(layer.inputs)
    slope = _rows(buffers.slopes, layer.output, batch, outputs)
    if not first:
        weight = _rows(buffers.parameters, layer.weight, outputs + outputs % 2, inputs)
        input_gradient(slope, weight, _rows(buffers.slopes, layer.input, batch, inputs))
    x = _rows(buffers.values, layer.input, batch, inputs)
    pair = _rows(buffers.scratch, 0, 2, inputs)
    for o in range(0, outputs, 2):
        weight_gradient(x, slope, o, pair)
        _step(buffers, layer.weight + o * width, pair.ravel(), rule)
    bias = buffers.scratch[:outputs]
    for o in range(outputs):
        bias[o] = slope[:, o].sum()
    _step(buffers, layer.bias, bias, rule)


@_compile
def _mixed(word: int) -> int:
    """Hash of a 32-bit word, as `models.dropout.mixed`."""
    word ^= word >> 16
    word = (word * FIRST) & WORD
    word ^= word >> 15
    word = (word * SECOND) & WORD
    return word ^ (word >> 16)


@_compile
def _activate(z: ndarray, units: int, count: int, stream: int, dropout: float) -> None:
    """ReLU and, with a positive probability, dropout, in place."""
    lowest = round(dropout * 2**32)
    scale = float32(1 / (1 - dropout))
    for b in range(count):
        for i in range(units):
            z[b, i] = max(z[b, i], float32(0)) * scale
            if lowest > 0 and _mixed((b * units + i + stream) & WORD) < lowest:
                z[b, i] = 0


@_compile
def _deactivate(values: ndarray, slopes: ndarray, dropout: float) -> None:
    """Gradient before ReLU and dropout, in place: units that are 0 pass nothing on."""
    scale = float32(1 / (1 - dropout))
    for b in range(values.shape[0]):
        for i in range(values.shape[1]):
            slopes[b, i] *= scale * float32(values[b, i] > 0)


@_compile
def _cross_entropy(scores: ndarray, targets: ndarray, classes: int, slope: ndarray) -> float:
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


@_compile
def _forward(
    layers: ndarray, buffers: Buffers, count: int, key: tuple[int, int], rule: Rule
) -> None:
    """Activations of a batch; its dropout masks hang on the key of the epoch and the step."""
    batch, convolutions = _filled(count), 0
    for n in range(len(layers)):
        layer = layers[n]
        if layer.side > 0:
            convolutions += 1
            _convolve(layer, buffers, count)
            if layers[n + 1].side == 0:
                _flatten(layer, layers[n + 1], buffers, count)
            continue
        z = _connect(layer, buffers, batch)
        if n + 1 < len(layers):
            hidden = n - convolutions
            stream = _mixed(key[1] + _mixed(key[0] + hidden & WORD) & WORD)
            _activate(z, layer.outputs, count, stream, rule.dropout)


@_compile
def _backward(layers: ndarray, buffers: Buffers, count: int, rule: Rule) -> None:
    """Gradients from the last layer to the first, each layer stepping when it is done with."""
    batch = _filled(count)
    for n in range(len(layers) - 1, -1, -1):
        layer = layers[n]
        if layer.side > 0:
            _convolve_back(layer, buffers, count, rule, n == 0)
            continue
        _connect_back(layer, buffers, batch, rule, n == 0)
        if n > 0 and layers[n - 1].side == 0:
            values = _rows(buffers.values, layer.input, batch, layer.inputs)
            _deactivate(
                values, _rows(buffers.slopes, layer.input, batch, layer.inputs), rule.dropout
            )
        elif n > 0:
            _flatten_back(layers[n - 1], layer, buffers, count)


@_compile
def train_epoch(
    layers: ndarray,
    buffers: Buffers,
    data: Data,
    rows: ndarray,
    targets: ndarray,
    batch_size: int,
    rule: Rule,
    key: int,
) -> float:
    """One pass over a client's samples; the parameters in `buffers` are trained in place.

    Args:
        layers: of dtype `LAYER`, convolutions first.
        rows: numbers of the samples in the order in which they are seen.
        targets: class of each.
        key: of the dropout masks of this epoch.
    Returns:
        The cross-entropy summed over all samples, each before its own step.
    """
    last, loss = layers[len(layers) - 1], 0.0
    for step in range(-(-len(rows) // batch_size)):
        part = rows[step * batch_size : (step + 1) * batch_size]
        wanted = targets[step * batch_size : (step + 1) * batch_size]
        batch = _filled(len(part))
        _gather(data, part, layers[0], buffers.values)
        _forward(layers, buffers, len(part), (key, step), rule)
        scores = _rows(buffers.values, last.output, batch, last.outputs)
        slope = _rows(buffers.slopes, last.output, batch, last.outputs)
        loss += _cross_entropy(scores, wanted, last.outputs, slope)
        _backward(layers, buffers, len(part), rule)
    return loss
