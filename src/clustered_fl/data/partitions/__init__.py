"""Who holds what: one module per kind of partition; the kind in the ledger is the module's name.

build(dataset, seed, <settings of the ledger>) -> Federation
"""

from importlib import import_module
from typing import Any

from clustered_fl.data.dataset import Dataset
from clustered_fl.data.federation import Federation
from clustered_fl.errors import InputError
from clustered_fl.options import call, module_called


def partition_module(kind: str) -> str:
    """Dotted name of the module of partition `kind`.

    Raises:
        InputError: if there is no such partition.
    """
    return module_called(kind, "clustered_fl.data.partitions", "partition")


def build_federation(dataset: Dataset, seed: int, kind: str = "", **settings: Any) -> Federation:
    """Create the federation `kind` with its settings from the ledger; same seed, same federation.

    Raises:
        InputError: if the kind is unknown, or the dataset cannot fill it.
    """
    build = import_module(partition_module(kind)).build
    return _checked(call(build, f"partition {kind}", settings, dataset=dataset, seed=seed))


def _checked(federation: Federation) -> Federation:
    empty = [i for i, rows in enumerate(federation.train) if not len(rows)]
    if empty:
        raise InputError(f"client {empty[0]} has no samples; every client needs at least one")
    if not all(map(len, federation.test_sets)):
        raise InputError("a test set is empty; every client needs at least one sample to test on")
    return federation
