"""Dropout whose masks are a function of a key, so that every way to train draws the same ones.

PyTorch's dropout takes its masks from one global stream: they would depend on the order in which
clients are trained. Here a unit's fate is a hash of (key, step, layer, sample in the batch, unit).
The key belongs to a client's epoch; the same integer arithmetic runs in PyTorch and, compiled, in
`clustered_fl.engine.compiled_kernels`.
"""

import torch
from torch import Tensor, nn

WORD = 0xFFFFFFFF
# The constants of Chris Wellons' "lowbias32" (2018), a 32-bit hash with little bias.
FIRST, SECOND = 0x7FEB352D, 0x846CA68B


def mixed(word: Tensor) -> Tensor:
    """Hash of each 32-bit word; int64 holds them, and its overflow leaves the low half right."""
    word = word ^ (word >> 16)
    word = (word * FIRST) & WORD
    word = word ^ (word >> 15)
    word = (word * SECOND) & WORD
    return word ^ (word >> 16)


def dropped_below(probability: float) -> int:
    """A unit is dropped if its hash is smaller than this."""
    return round(probability * 2**32)


class Dropout(nn.Module):
    """Sets units to 0 with a probability while training, and divides the others by the rest.

    Args:
        probability: of being dropped.
        layer: number of the layer, so that layers differ.

    Attributes:
        key: int64 tensor [], of one client's epoch. step: int64 tensor [], batches before this one.
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
        kept = mixed(units + stream & WORD) >= dropped_below(self.probability)
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
    return {
        f"{name}.{part}": value for name in layers for part, value in (("key", key), ("step", step))
    }
