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

from clustered_fl.models import build_model

REPETITIONS, STEPS = 7, 10
CELLS = [("small_conv_net", 1, 28), ("le_net", 1, 28), ("le_net", 3, 32), ("wide_conv_net", 1, 28)]
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


def compare(name: str, channels: int, side: int, batch: int) -> dict[str, float]:
    """Median milliseconds per step of both implementations, and the relative gradient error."""
    torch.manual_seed(0)
    images, labels = torch.randn(batch, channels, side, side), torch.randint(0, 10, (batch,))
    network = build_model(name, (channels, side, side), 10)
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
    for column in ("network", "input", "batch", "PyTorch", "direct", "ratio", "gradient error"):
        table.add_column(column, justify="right")
    for name, channels, side in CELLS:
        for batch in BATCHES:
            row = compare(name, channels, side, batch)
            ratio = row["PyTorch"] / row["direct"]
            numbers = (f"{row['PyTorch']:.2f}", f"{row['direct']:.2f}", f"{ratio:.2f}")
            table.add_row(
                name, f"{channels} x {side} x {side}", str(batch), *numbers, f"{row['error']:.0e}"
            )
    console = Console()
    console.print(table)
    console.print(f"load of this machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
