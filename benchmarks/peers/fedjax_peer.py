"""FedJAX: the client training of its federated averaging, mapped over clients with `jax.jit`."""

from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

import fedjax
import haiku as hk
import jax
import numpy as np
from fedjax.algorithms.fed_avg import create_train_for_each_client

from peers import Engine
from problem import Architecture, Problem

Tree = dict[str, dict[str, Any]]


def _model(architecture: Architecture) -> fedjax.Model:
    """The network with Haiku's layers; images are [batch, height, width, channels]."""

    def forward(batch: dict[str, Any]) -> jax.Array:
        features = batch["x"]
        padding = "SAME" if architecture.padding else "VALID"
        for _, filters in architecture.channels:
            features = jax.nn.relu(hk.Conv2D(filters, 5, padding=padding)(features))
            features = hk.MaxPool((1, 2, 2, 1), (1, 2, 2, 1), "VALID")(features)
        features = hk.Flatten()(features)
        for _, width in architecture.widths[:-1]:
            features = jax.nn.relu(hk.Linear(width)(features))
        return hk.Linear(architecture.classes)(features)

    channels, height, width = architecture.image
    sample = {"x": np.zeros((1, height, width, channels), np.float32), "y": np.zeros(1, np.int32)}
    return fedjax.create_model_from_haiku(
        hk.transform(forward),
        sample,
        lambda batch, scores: fedjax.metrics.unreduced_cross_entropy_loss(batch["y"], scores),
    )


class Layout:
    """Between PyTorch's flat vector and Haiku's tree.

    PyTorch stores a kernel as [outputs, inputs, height, width] and a dense weight as [outputs,
    inputs], Haiku the other way round, and they flatten images in different orders.
    """

    def __init__(self, architecture: Architecture) -> None:
        self.grid = architecture.grid
        self.shapes = list(architecture.shapes())
        convolutions, dense = len(architecture.channels), len(architecture.widths)
        self.names = [f"conv2_d_{i}" if i else "conv2_d" for i in range(convolutions)]
        self.names += [f"linear_{i}" if i else "linear" for i in range(dense)]
        self.first = convolutions

    def tree(self, flat: np.ndarray) -> Tree:
        """Haiku's parameters of PyTorch's flat vector [P]."""
        tree, start = {}, 0
        for layer, (weight, bias) in enumerate(self.shapes):
            end = start + int(np.prod(weight))
            w, b = flat[start:end].reshape(weight), flat[end : end + bias[0]]
            tree[self.names[layer]] = {"w": self._to_haiku(layer, w), "b": b}
            start = end + bias[0]
        return tree

    def flat(self, tree: Tree) -> np.ndarray:
        """PyTorch's flat vector [P] of Haiku's parameters."""
        return np.concatenate([part.ravel() for part in self._parts(tree)])

    def _parts(self, tree: Tree) -> Iterator[np.ndarray]:
        for layer, name in enumerate(self.names):
            w = np.asarray(tree[name]["w"])
            if layer < self.first:
                yield w.transpose(3, 2, 0, 1)
            elif layer == self.first:
                channels, height, width = self.grid
                yield w.reshape(height, width, channels, -1).transpose(3, 2, 0, 1)
            else:
                yield w.T
            yield np.asarray(tree[name]["b"])

    def _to_haiku(self, layer: int, weight: np.ndarray) -> np.ndarray:
        if layer < self.first:
            return weight.transpose(2, 3, 1, 0)
        if layer == self.first:
            images = weight.reshape(-1, *self.grid)
            return images.transpose(2, 3, 1, 0).reshape(-1, len(weight))
        return weight.T


def _clients(problem: Problem) -> list[tuple]:
    """Number, batches in the given order and random key of every client."""
    keys = jax.random.split(jax.random.PRNGKey(0), problem.clients)
    found = []
    for client in range(problem.clients):
        rows = problem.order(client)
        images = problem.inputs[client, rows].transpose(0, 2, 3, 1)
        data = {"x": np.ascontiguousarray(images), "y": problem.labels[client, rows]}
        batches = fedjax.ClientDataset(data).shuffle_repeat_batch(
            batch_size=problem.batch_size, num_epochs=1, skip_shuffle=True
        )
        found.append((client, batches, keys[client]))
    return found


class FedJax(Engine):
    """FedJAX's for_each_client with its default backend, without a server."""

    name, version = "fedjax", f"{version('fedjax')}, jax {jax.__version__}"

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.layout = Layout(problem.architecture)
        self.start = jax.device_put(self.layout.tree(problem.start))
        self.for_each_client = create_train_for_each_client(
            fedjax.model_grad(_model(problem.architecture)), fedjax.optimizers.sgd(problem.lr)
        )
        self.clients = _clients(problem)

    def train(self) -> list[Tree]:
        """Train every client from the start parameters."""
        found = [delta for _, delta in self.for_each_client(self.start, self.clients)]
        return jax.block_until_ready(found)

    def updates(self, result: list[Tree]) -> np.ndarray:
        """FedJAX reports start minus end, in Haiku's layout."""
        return np.stack([-self.layout.flat(tree) for tree in result])
