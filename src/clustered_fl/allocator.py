"""Freed memory is kept for the next allocation instead of being returned to the system.

Training steps and forward passes allocate the same arrays, up to 200 MB large, again and again. By
default glibc returns them to the operating system, which zeroes every page at its next use. Keeping
them cuts the time to embed images to between 0.4 and 0.8 of what it was, and the time to train
autoencoders to 0.9 of it. The results are bit-identical.
"""

import ctypes

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Parameters of glibc's `mallopt` (malloc.h)."""
LARGEST = 2**28
"""Bytes of the largest block that is kept; larger ones are allocated once, not in every step."""
MOST = 2**31 - 1
"""Free bytes beyond which memory is returned; the largest value of a C int."""


def keep_freed_memory() -> bool:
    """Set it for this process; False where the C library is not glibc, or is older than 2.35.

    One setting alone would fix the other at its default, which is slower than no setting.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None or not mallopt(_MMAP_THRESHOLD, LARGEST):
        return False
    return bool(mallopt(_TRIM_THRESHOLD, MOST))
