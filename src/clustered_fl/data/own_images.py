"""Datasets in which clients see the same thing differently, as each has images of its own.

Images are changed in their place, so that runs and groupings need not know of it. There are two
ways: the setting `drift` (`data.transforms`), and a function `images(dataset, federation)` in the
partition's module. No image may belong to clients that see it differently.
"""

from importlib import import_module
from typing import Any

from clustered_fl.data.dataset import Dataset
from clustered_fl.data.federation import Federation
from clustered_fl.data.partitions import partition_module


def has_own_images(federation: dict[str, Any]) -> bool:
    """Whether clients with these settings (`kind` and those of the partition) see their own."""
    return federation.get("drift") is not None or hasattr(_module(federation), "images")


def own_images(
    dataset: Dataset, federation: Federation, settings: dict[str, Any], seed: int
) -> Dataset:
    """The dataset as a federation's clients see it; InputError if images cannot be changed."""
    kind = _module(settings)
    if hasattr(kind, "images"):
        return kind.images(dataset, federation)
    from clustered_fl.data.transforms import drifted  # imports torch

    return drifted(dataset, federation, settings.get("drift"), seed)


def _module(federation: dict[str, Any]) -> Any:
    return import_module(partition_module(federation.get("kind", "")))
