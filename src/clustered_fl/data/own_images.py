"""Datasets with transformed images, where clients see the same thing differently.

Transformed images keep their row numbers, so runs and groupings need no change. The transformation
is either the setting `drift` (`data.transforms`) or a function
`images(dataset, federation)` in the partition's module. Clients with different transformations may
not share images.
"""

from importlib import import_module
from typing import Any

from clustered_fl.data.dataset import Dataset
from clustered_fl.data.federation import Federation
from clustered_fl.data.partitions import partition_module


def has_own_images(federation: dict[str, Any]) -> bool:
    """Whether these settings of a partition (with its `kind`) transform clients' images."""
    return federation.get("drift") is not None or hasattr(_module(federation), "images")


def own_images(
    dataset: Dataset, federation: Federation, settings: dict[str, Any], seed: int
) -> Dataset:
    """The dataset with clients' transformed images; InputError if impossible."""
    kind = _module(settings)
    if hasattr(kind, "images"):
        return kind.images(dataset, federation)
    from clustered_fl.data.transforms import drifted  # imports torch

    return drifted(dataset, federation, settings.get("drift"), seed)


def _module(federation: dict[str, Any]) -> Any:
    return import_module(partition_module(federation.get("kind", "")))
