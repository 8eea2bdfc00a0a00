"""Dropout whose masks are a function of a key, so that every way to train draws the same ones.

PyTorch's dropout takes its masks from one global stream, so that they would depend on the order of
the clients. Here a unit is dropped by a hash of (key of the client's epoch, step, layer, sample in
the batch, unit); `clustered_fl.engine.dense_kernels` compiles the same function.
"""

import torch
from torch import Tensor, nn

WORD = 0xFFFFFFFF
# The constants of Chris Wellons' "lowbias32" (2018), a 32-bit hash with little bias.
FIRST, SECOND = 0x7FEB352D, 0x846CA68B


def mixed(word: Tensor | int) -> Tensor | int:
    """Hash of each 32-bit word; int64 holds them, and its overflow leaves the low half right."""
    word = word ^ (word >> 16)
    word = (word * FIRST) & WORD
    word = word ^ (word >> 15)
    word = (word * SECOND) & WORD
    return word ^ (word >> 16)


class Dropout(nn.Module):
    """Sets units to 0 with a probability while training, and divides the others by the rest.

    `layer` is its number, so that layers differ. `key`, int64 [], is that of a client's epoch, and
    `step`, int64 [], the number of batches before this one.
    """

    def __init__(self, probability: float, layer: int) -> None:
        super().__init__()
        self.probability, self.layer = probability, layer
        # Buffers, so that torch.func can put other ones in their place; no part of a saved model.
        self.register_buffer("key", torch.zeros((), dtype=torch.int64), persistent=False)
        self.register_buffer("step", torch.zeros((), dtype=torch.int64), persistent=False)

    def forward(self, values: Tensor) -> Tensor:
        """Drop units of `values` [batch, units]."""
        if not self.training or self.probability == 0:
            return values
        stream = mixed(self.step + mixed(self.key + self.layer & WORD) & WORD)
        units = torch.arange(values.numel(), device=values.device).view(values.shape)
        kept = mixed(units + stream & WORD) >= round(self.probability * 2**32)
        return values * kept / (1 - self.probability)


def begin_epoch(network: nn.Module, key: Tensor) -> None:
    """Give the dropout layers of `network` the key of an epoch, and let them count from 0."""
    for layer in network.modules():
        if isinstance(layer, Dropout):
            layer.key, layer.step = key, torch.zeros_like(key)


def next_step(network: nn.Module) -> None:
    """Count a batch."""
    for layer in network.modules():
        if isinstance(layer, Dropout):
            layer.step = layer.step + 1


def buffers(network: nn.Module, key: Tensor, step: Tensor) -> dict[str, Tensor]:
    """Key and step of all dropout layers of `network`, as `torch.func.functional_call` wants."""
    layers = [name for name, layer in network.named_modules() if isinstance(layer, Dropout)]
    held = {"key": key, "step": step}
    return {f"{name}.{part}": value for name in layers for part, value in held.items()}
