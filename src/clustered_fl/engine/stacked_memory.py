"""The number of clients in a stack, from its memory.

**Not yet run on a GPU.**
"""

import torch

from clustered_fl.models.numerics import NUMERICS

__numerics__ = NUMERICS

CPU_BYTES = 2 * 2**30
"""Memory of one stack on a CPU; larger stacks are not faster there."""
SHARE = 0.25
"""Share of a GPU's free memory for one stack: two are kept, and methods need the other half."""


def stack_bytes(device: torch.device) -> int:
    """Memory that one stack may take on a device."""
    if device.type == "cpu":
        return CPU_BYTES
    torch.cuda.empty_cache()  # what remains reserved belongs to tensors and captured graphs
    free, _ = torch.cuda.mem_get_info(device)
    return int(SHARE * free)


def clients_within(memory: int, per_client: int) -> int:
    """Number of clients of `per_client` bytes that fit into `memory`: a power of two, at least 1.

    The size of a stack may change rounding, and free memory differs slightly between starts of a
    run; rounding down to a power of two keeps the size the same.
    """
    return 1 << max(0, (memory // per_client).bit_length() - 1)
