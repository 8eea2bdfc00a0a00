"""Dropout whose masks are a function of a key, so that every training path draws the same masks.

PyTorch's dropout draws masks from one global stream, so they would depend on the order of clients.
Here a hash of (key of the client's epoch, step, layer, sample in the batch, unit) decides whether a
unit is dropped; `clustered_fl.engine.dense_kernels` compiles the same function.
"""

import torch
from torch import Tensor, nn

WORD = 0xFFFFFFFF
# The constants of Chris Wellons' "lowbias32" (2018), a 32-bit hash with little bias.
FIRST, SECOND = 0x7FEB352D, 0x846CA68B


def mixed(word: Tensor | int) -> Tensor | int:
    """Hash of each 32-bit word, stored in int64; overflow does not affect the low 32 bits."""
    word = word ^ (word >> 16)
    word = (word * FIRST) & WORD
    word = word ^ (word >> 15)
    word = (word * SECOND) & WORD
    return word ^ (word >> 16)


class Dropout(nn.Module):
    """Dropout with probability p in training; the other units are divided by 1 - p.

    `layer` is its number, so that masks of layers differ. `key`, int64 [], is the key of a client's
    epoch, and `step`, int64 [], the number of batches before this one.
    """

    def __init__(self, probability: float, layer: int) -> None:
        super().__init__()
        self.probability, self.layer = probability, layer
        # Buffers, so that torch.func can replace them; not part of a saved model.
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
    """Set the key of an epoch in all dropout layers of `network`, and reset their step to 0."""
    for layer in network.modules():
        if isinstance(layer, Dropout):
            layer.key, layer.step = key, torch.zeros_like(key)


def next_step(network: nn.Module) -> None:
    """Increase the step of all dropout layers by one."""
    for layer in network.modules():
        if isinstance(layer, Dropout):
            layer.step = layer.step + 1


def buffers(network: nn.Module, key: Tensor, step: Tensor) -> dict[str, Tensor]:
    """Key and step of all dropout layers of `network`, as `torch.func.functional_call` wants."""
    layers = [name for name, layer in network.named_modules() if isinstance(layer, Dropout)]
    held = {"key": key, "step": step}
    return {f"{name}.{part}": value for name in layers for part, value in held.items()}
