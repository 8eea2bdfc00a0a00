"""Clients that see the same thing differently: datasets in which each has images of its own.

A federation is row numbers in a dataset, and runs read images by them. Where no image belongs to
clients who see it differently, images can be changed in their place: a dataset of the same rows
and labels, of which runs, groupings and partitions need not know that it was made. There are two
ways: the setting `drift`, for pipelines of transforms that any such partition can have
(`data.transforms`), and a function `images(dataset, federation)` in the partition's module, for a
change that is the partition's own.
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
    """The dataset as its clients see it.

    Args:
        settings: that the federation was made with.
        seed: of it.
    Raises:
        InputError: if there is nothing to change, or it cannot be done.
    """
    kind = _module(settings)
    if hasattr(kind, "images"):
        return kind.images(dataset, federation)
    from clustered_fl.data.transforms import drifted  # imports torch

    return drifted(dataset, federation, settings.get("drift"), seed)


def _module(federation: dict[str, Any]) -> Any:
    return import_module(partition_module(federation.get("kind", "")))
