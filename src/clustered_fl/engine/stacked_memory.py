"""How many clients a stack may hold, known before its memory is taken, and copies that do not wait.

**Not yet seen on a GPU.**
"""

import torch
from torch import Tensor

from clustered_fl.models.numerics import NUMERICS

__numerics__ = NUMERICS

CPU_BYTES = 2 * 2**30
"""Memory of one stack on a CPU, which has other uses for its memory and gains nothing by more."""
SHARE = 0.25
"""Of a GPU's free memory for one stack: two are kept, and methods need the other half."""


def stack_bytes(device: torch.device) -> int:
    """Memory that one stack may take on a device."""
    if device.type == "cpu":
        return CPU_BYTES
    free, _ = torch.cuda.mem_get_info(device)
    # What PyTorch holds without using it is free as well.
    idle = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return int(SHARE * (free + idle))


def clients_within(memory: int, per_client: int) -> int:
    """Clients of so many bytes each that fit into `memory` bytes: a power of two, at least one.

    A power of two, because the size of a stack may change rounding, and free memory differs a
    little from one start of a run to the next.
    """
    return 1 << max(0, (memory // per_client).bit_length() - 1)


def transferred(values: Tensor, device: torch.device) -> Tensor:
    """A copy of `values` on a device, without waiting for the work that the device has left.

    PyTorch keeps page-locked memory until copies from it are done.
    """
    if device.type == "cuda":
        values = values.pin_memory()
    return values.to(device, non_blocking=True)
