"""Partitions of data among clients: one module per kind, with the kind's name.

Each has `build(dataset, seed, <settings of the ledger>) -> Federation`. A partition that transforms
clients' images also has `images` (`data.own_images`). All accept the settings of `data.modifiers`.
"""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from inspect import signature
from typing import Any

from pydantic import create_model

from clustered_fl.data.dataset import Dataset
from clustered_fl.data.federation import Federation
from clustered_fl.data.modifiers import modified
from clustered_fl.errors import InputError
from clustered_fl.options import Strict, module_called, validated

GIVEN = {"dataset", "seed", "federation", "own_tests"}
"""Parameters that are not settings."""


def partition_module(kind: str) -> str:
    """Dotted name of the module of partition `kind`; an InputError if there is none."""
    return module_called(kind, "clustered_fl.data.partitions", "partition")


@cache
def partition_settings(kind: str) -> type[Strict]:
    """A pydantic model of all settings of a kind, to check them without data."""
    module = import_module(partition_module(kind))
    own, general = _settings_of(module.build), _settings_of(modified)
    if hasattr(module, "images"):  # images are transformed once, by the partition
        general["drift"] = (None, None)
    return create_model(kind, __base__=Strict, **(own | general | own))


def _settings_of(function: Callable) -> dict[str, tuple[Any, Any]]:
    """Name -> annotation and default, `...` for a setting that must be given."""
    return {
        name: (each.annotation, ... if each.default is each.empty else each.default)
        for name, each in signature(function).parameters.items()
        if name not in GIVEN
    }


def build_federation(dataset: Dataset, seed: int, /, kind: str = "", **settings: Any) -> Federation:
    """The federation `kind` of a seed; InputError if unknown, or the dataset cannot fill it."""
    build = import_module(partition_module(kind)).build
    found = dict(validated(partition_settings(kind), f"partition {kind}", settings))
    own_tests = found["held_out"] is not None
    own = {name: found.pop(name) for name in _settings_of(build)}
    federation = modified(build(dataset, seed, **own), seed, own_tests, **found)
    empty = [i for i, rows in enumerate(federation.train) if not len(rows)]
    if empty:
        raise InputError(f"client {empty[0]} has no samples; every client needs at least one")
    if not all(map(len, federation.test_sets)):
        raise InputError("a test set is empty; every client needs at least one sample to test on")
    return federation
