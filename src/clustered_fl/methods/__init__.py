"""Policies that decide which clients average together: one module per method, all alike.

    init(engine, settings) -> State
    round_(state, engine, settings, number) -> State, rows of metrics

`number` is that of the rounds completed before. The method's name in the ledger is the module's. A
method that can place clients which joined later also has `assign_newcomers`, which gives one entry
for each (`state.placed`), and `newcomer_groups` if it can before the end. One whose `Settings` has
a `relatedness` is given that of the run's grouping (`clustered_fl.groupings`).
"""

from importlib import import_module
from types import ModuleType

from clustered_fl.options import module_called

SHARED = ("groups", "state")


def method_module(name: str) -> str:
    """Dotted name of the module of method `name`; an InputError if there is none."""
    return module_called(name, "clustered_fl.methods", "method", SHARED)


def load_method(name: str) -> ModuleType:
    """Import method `name`."""
    return import_module(method_module(name))
