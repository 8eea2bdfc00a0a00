"""A replication of three papers on clustered federated learning, claim by claim.

`federation`, `encoder`, `cluster` and `train` run their methods on arrays of your own
(`clustered_fl.simulation`).
"""

from importlib import import_module
from typing import Any

__all__ = ["cluster", "encoder", "federation", "train"]


def __getattr__(name: str) -> Any:
    """Import on first use: PyTorch takes seconds to import, and most steps do not need it."""
    if name not in __all__:
        raise AttributeError(f"clustered_fl has no {name!r}")
    return getattr(import_module("clustered_fl.simulation"), name)
