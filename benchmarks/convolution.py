"""Is the direct convolution of `models.kernels` worth its lines? Compared with PyTorch in one run.

    python benchmarks/convolution.py

Both train the same network on the same batches on one thread, interleaved, median of several
repetitions; the CPU seconds of this process count. Look at ratios: absolute times of a shared
machine mean little, so its load stands beside them.
"""

import os
import statistics
import time
from collections.abc import Callable

os.environ["OMP_NUM_THREADS"] = "1"

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn
from torch.nn import functional

from clustered_fl.models.cnn import ConvNet

REPETITIONS, STEPS = 7, 10
# Channels, side, filters and hidden layers of small_conv_net, le_net twice, and of a network that
# shows why many filters are left to PyTorch (`models.cnn.WideConvNet`).
CELLS = [
    (1, 28, (6, 16), ()),
    (1, 28, (6, 16), (120, 84)),
    (3, 32, (6, 16), (120, 84)),
    (1, 28, (32, 32), (256,)),
]
BATCHES = (10, 100)


def with_torch(network: nn.Module, images: Tensor) -> Tensor:
    """The same forward pass with PyTorch's own layers, pooling first because that is faster."""
    for layer in network.convolutions:
        images = functional.conv2d(images, layer.weight, layer.bias)
        images = functional.relu(functional.max_pool2d(images, 2))
    hidden = images.flatten(1)
    for layer in network.layers[:-1]:
        hidden = functional.relu(layer(hidden))
    return network.layers[-1](hidden)


def stepper(network: nn.Module, forward: Callable, images: Tensor, labels: Tensor) -> Callable:
    """A function that makes one step of SGD."""
    parameters = list(network.parameters())

    def step() -> None:
        network.zero_grad()
        functional.cross_entropy(forward(network, images), labels).backward()
        torch._foreach_add_([p.data for p in parameters], [p.grad for p in parameters], alpha=-1e-3)

    return step


def milliseconds(step: Callable) -> float:
    """CPU milliseconds of one step, over a few."""
    started = time.process_time()
    for _ in range(STEPS):
        step()
    return (time.process_time() - started) / STEPS * 1e3


def compare(network: ConvNet, images: Tensor) -> dict[str, float]:
    """Median milliseconds per step of both implementations, and the relative gradient error."""
    labels = torch.randint(0, 10, (len(images),))
    forwards = {"direct": lambda n, x: n(x), "PyTorch": with_torch}
    gradients = {}
    for key, forward in forwards.items():
        network.zero_grad()
        functional.cross_entropy(forward(network, images), labels).backward()
        gradients[key] = torch.cat([p.grad.flatten() for p in network.parameters()])
    error = (gradients["direct"] - gradients["PyTorch"]).norm() / gradients["PyTorch"].norm()
    steps = {key: stepper(network, forward, images, labels) for key, forward in forwards.items()}
    times: dict[str, list[float]] = {key: [] for key in steps}
    for _ in range(REPETITIONS):
        for key, step in steps.items():
            times[key].append(milliseconds(step))
    return {key: statistics.median(found) for key, found in times.items()} | {"error": float(error)}


def main() -> None:
    """Print one row per network and batch size."""
    torch.set_num_threads(1)
    table = Table(title="CPU milliseconds per step, one thread")
    columns = "input, filters, hidden, batch, PyTorch, direct, ratio, gradient error"
    for column in columns.split(", "):
        table.add_column(column, justify="right")
    for channels, side, filters, hidden in CELLS:
        for batch in BATCHES:
            torch.manual_seed(0)
            network = ConvNet(channels, side, filters, hidden, 10)
            row = compare(network, torch.randn(batch, channels, side, side))
            ratio = row["PyTorch"] / row["direct"]
            numbers = (f"{row['PyTorch']:.2f}", f"{row['direct']:.2f}", f"{ratio:.2f}")
            shape = (f"{channels} x {side} x {side}", str(filters), str(hidden), str(batch))
            table.add_row(*shape, *numbers, f"{row['error']:.0e}")
    console = Console()
    console.print(table)
    console.print(f"load of this machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
