"""Every random draw comes from a generator keyed by its purpose.

A draw depends on (seed, purpose, numbers) and on nothing else, so adding a run, a client or a round
changes no other draw, and a resumed run continues with the draws it would have made.
"""

import zlib

import numpy as np


def generator(seed: int, purpose: str, *numbers: int) -> np.random.Generator:
    """Random generator for one purpose, e.g. `generator(seed, "batches", client, round, epoch)`."""
    key = np.random.SeedSequence([seed, zlib.crc32(purpose.encode()), *numbers])
    return np.random.Generator(np.random.Philox(key))
