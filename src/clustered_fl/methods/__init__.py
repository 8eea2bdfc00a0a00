"""Policies that decide who averages with whom: one module per method, all with the same functions.

    init(engine, settings) -> State
    round_(state, engine, settings, number) -> State, rows of metrics

The method's name in the ledger is the module's. A method that can place clients which joined later
also has `assign_newcomers`, and `newcomer_groups` if it can before the end. One whose `Settings`
has a `relatedness` is given that of the run's grouping (`clustered_fl.groupings`).
"""

from importlib import import_module
from types import ModuleType

from clustered_fl.options import module_called

SHARED = ("groups", "state")


def method_module(name: str) -> str:
    """Dotted name of the module of method `name`.

    Raises:
        InputError: if there is no such method.
    """
    return module_called(name, "clustered_fl.methods", "method", SHARED)


def load_method(name: str) -> ModuleType:
    """Import method `name`."""
    return import_module(method_module(name))
