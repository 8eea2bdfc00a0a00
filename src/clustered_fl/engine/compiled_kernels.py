"""A client's epoch of SGD as one compiled call: `engine.compiled` prepares its arguments.

Convolutions (the loops of `models.kernels`) have activations [channels, height, width * batch],
dense layers (`dense_kernels`), which follow them, [batch, units].
"""

from collections.abc import Callable
from typing import NamedTuple

from numba import float32, njit
from numpy import ndarray

from clustered_fl.engine import dense_kernels
from clustered_fl.engine.dense_kernels import compiled, filled, hashed, stride
from clustered_fl.engine.layout import Buffers
from clustered_fl.models import kernels
from clustered_fl.models.dropout import WORD
from clustered_fl.models.kernels import MARGIN, TAPS
from clustered_fl.models.numerics import NUMERICS

__numerics__ = NUMERICS


class Data(NamedTuple):
    """Images uint8 [N, pixels]; a pixel becomes value * scale - shift, in float32."""

    images: ndarray
    scale: float
    shift: float


class Rule(NamedTuple):
    """Of SGD: learning rate, momentum, FedProx's mu, and the probability of dropping a unit."""

    rate: float
    momentum: float
    proximal: float
    dropout: float


@compiled
def _part(buffer: ndarray, start: int, shape: tuple[int, ...]) -> ndarray:
    """An array of a shape, within a flat buffer."""
    size = 1
    for length in shape:
        size *= length
    return buffer[start : start + size].reshape(shape)


@compiled
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


@compiled
def _gather(data: Data, rows: ndarray, layer, values: ndarray) -> None:  # noqa: ANN001
    """Put the normalised images of a batch where the first layer reads them."""
    pixels, count = data.images.shape[1], len(rows)
    if layer.side == 0:
        out = _part(values, layer.input, (filled(count), stride(pixels)))
        out[count:] = 0
        for b in range(count):
            for i in range(pixels):
                out[b, i] = float32(data.images[rows[b], i]) * data.scale - data.shift
        return
    image = values[layer.input : layer.input + pixels * count].reshape((pixels, count))
    for b in range(count):
        for i in range(pixels):
            image[i, b] = float32(data.images[rows[b], i]) * data.scale - data.shift


@compiled
def _convolve(layer, buffers: Buffers, count: int) -> None:  # noqa: ANN001
    """Convolution, ReLU and pooling."""
    side, rows, outputs = layer.side, layer.side - TAPS + 1, layer.outputs
    image = _part(buffers.values, layer.input, (layer.inputs, side, side * count))
    weight = _part(buffers.parameters, layer.weight, (outputs, layer.inputs, TAPS, TAPS))
    z = _part(buffers.values, layer.z, (outputs, rows, rows * count))
    for o in range(outputs):
        z[o] = buffers.parameters[layer.bias + o]
    kernels.correlate(image, weight, 0, count, z)
    half = rows // 2
    kernels.pool(z, count, _part(buffers.values, layer.output, (outputs, half, half * count)))


@compiled
def _unpool(layer, buffers: Buffers, count: int) -> ndarray:  # noqa: ANN001
    """Gradient before ReLU and pooling [outputs, rows, (columns + 2 * MARGIN) * count]."""
    rows, outputs = layer.side - TAPS + 1, layer.outputs
    half, margin = rows // 2, MARGIN * count
    z = _part(buffers.values, layer.z, (outputs, rows, rows * count))
    pooled = _part(buffers.values, layer.output, (outputs, half, half * count))
    slope = _part(buffers.slopes, layer.output, (outputs, half, half * count))
    dz = _part(buffers.slopes, layer.z, (outputs, rows, rows * count + 2 * margin))
    dz[:, :, :margin] = 0
    dz[:, :, rows * count + margin :] = 0
    kernels.unpool(z, pooled, slope, count, dz)
    return dz


@compiled
def _convolve_back(layer, buffers: Buffers, count: int, rule: Rule, first: bool) -> None:  # noqa: ANN001
    """Gradient of the input, unless the layer is the first, and then a step of the layer."""
    side, outputs, inputs = layer.side, layer.outputs, layer.inputs
    shape = outputs, inputs, TAPS, TAPS
    dz = _unpool(layer, buffers, count)
    if not first:
        channels = inputs + inputs % 2  # rows are written in pairs
        flipped = _part(buffers.scratch, 0, (channels, outputs, TAPS, TAPS))
        flipped[:] = 0
        kernels.flip(_part(buffers.parameters, layer.weight, shape), flipped)
        slope = _part(buffers.slopes, layer.input, (channels, side, side * count))
        slope[:] = 0
        kernels.correlate(dz, flipped, TAPS - 1, count, slope)
    gradient = _part(buffers.scratch, 0, shape)
    gradient[:] = 0
    image = _part(buffers.values, layer.input, (inputs, side, side * count))
    kernels.weight_gradient(image, dz, count, gradient)
    _step(buffers, layer.weight, gradient.ravel(), rule)
    bias = buffers.scratch[:outputs]
    for o in range(outputs):
        bias[o] = dz[o].sum()
    _step(buffers, layer.bias, bias, rule)


@compiled
def _flatten(layer, after, buffers: Buffers, count: int) -> None:  # noqa: ANN001
    """Bring the output of the last convolution to the first dense layer."""
    image = buffers.values[layer.output : layer.output + after.inputs * count]
    x = _part(buffers.values, after.input, (filled(count), stride(after.inputs)))
    x[count:] = 0
    x[:count, : after.inputs] = image.reshape((after.inputs, count)).T


@compiled
def _flatten_back(layer, after, buffers: Buffers, count: int) -> None:  # noqa: ANN001
    """Bring the gradient of the first dense layer's input to the last convolution."""
    image = buffers.slopes[layer.output : layer.output + after.inputs * count]
    slope = _part(buffers.slopes, after.input, (count, stride(after.inputs)))
    image.reshape((after.inputs, count))[:] = slope[:, : after.inputs].T


@compiled
def _connect(layer, buffers: Buffers, batch: int) -> ndarray:  # noqa: ANN001
    """A dense layer before its ReLU, [batch, stride(outputs)]."""
    outputs = layer.outputs + layer.outputs % 2
    x = _part(buffers.values, layer.input, (batch, stride(layer.inputs)))
    weight = _part(buffers.parameters, layer.weight, (outputs, stride(layer.inputs)))
    out = _part(buffers.values, layer.output, (batch, stride(layer.outputs)))
    dense_kernels.dense(x, weight, buffers.parameters[layer.bias : layer.bias + outputs], out)
    return out


@compiled
def _connect_back(layer, buffers: Buffers, batch: int, rule: Rule, first: bool) -> None:  # noqa: ANN001
    """Gradient of the input, unless the layer is the first, and then a step of the layer."""
    outputs, width = layer.outputs, stride(layer.inputs)
    slope = _part(buffers.slopes, layer.output, (batch, stride(outputs)))
    if not first:
        weight = _part(buffers.parameters, layer.weight, (outputs + outputs % 2, width))
        out = _part(buffers.slopes, layer.input, (batch, width))
        dense_kernels.input_gradient(slope, weight, out)
    x = _part(buffers.values, layer.input, (batch, width))
    pair = _part(buffers.scratch, 0, (2, width))
    for o in range(0, outputs, 2):
        dense_kernels.weight_gradient(x, slope, o, pair)
        _step(buffers, layer.weight + o * width, pair.ravel(), rule)
    bias = buffers.scratch[:outputs]
    for o in range(outputs):
        bias[o] = slope[:, o].sum()
    _step(buffers, layer.bias, bias, rule)


@compiled
def _forward(
    layers: ndarray, buffers: Buffers, count: int, key: int, step: int, rule: Rule
) -> None:
    """Activations of a batch; its dropout masks depend on the key of the epoch and the step."""
    batch, convolutions = filled(count), 0
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
            stream = hashed(step + hashed(key + hidden & WORD) & WORD)
            dense_kernels.activate(z, layer.outputs, count, stream, rule.dropout)


@compiled
def _backward(layers: ndarray, buffers: Buffers, count: int, rule: Rule) -> None:
    """Gradients from the last layer to the first; each layer steps after passing them on."""
    batch = filled(count)
    for n in range(len(layers) - 1, -1, -1):
        layer = layers[n]
        if layer.side > 0:
            _convolve_back(layer, buffers, count, rule, n == 0)
            continue
        _connect_back(layer, buffers, batch, rule, n == 0)
        if n > 0 and layers[n - 1].side == 0:
            shape = batch, stride(layer.inputs)
            values = _part(buffers.values, layer.input, shape)
            slopes = _part(buffers.slopes, layer.input, shape)
            dense_kernels.deactivate(values, slopes, rule.dropout)
        elif n > 0:
            _flatten_back(layers[n - 1], layer, buffers, count)


def epoch_trainer(code: str) -> Callable[..., float]:
    """A compiled function that makes one pass over a client's samples.

    It trains the parameters in `buffers` in place and returns the cross-entropy summed over all
    samples, each before its own step. `layers` has dtype `LAYER`, convolutions first; `rows` and
    `targets` are samples in the order of training and their classes; `key` is that of the epoch's
    dropout masks. `code` is a digest of this module and of those that it calls, because Numba keeps
    compiled code on disk and looks for changes in the outermost function and its closure only.
    """

    @njit(fastmath=True, nogil=True, cache=True, error_model="numpy")
    def train_epoch(layers, buffers, data, rows, targets, batch_size, rule, key):  # noqa: ANN001, ANN202
        _ = code
        last, loss = layers[len(layers) - 1], 0.0
        for step in range(-(-len(rows) // batch_size)):
            part = rows[step * batch_size : (step + 1) * batch_size]
            wanted = targets[step * batch_size : (step + 1) * batch_size]
            _gather(data, part, layers[0], buffers.values)
            _forward(layers, buffers, len(part), key, step, rule)
            shape = filled(len(part)), stride(last.outputs)
            scores = _part(buffers.values, last.output, shape)
            slope = _part(buffers.slopes, last.output, shape)
            loss += dense_kernels.cross_entropy(scores, wanted, last.outputs, slope)
            _backward(layers, buffers, len(part), rule)
        return loss

    return train_epoch
