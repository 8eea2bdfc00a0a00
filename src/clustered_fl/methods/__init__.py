"""Policies that decide who averages with whom: one module per method, all with the same functions.

    init(engine, settings) -> State
    round_(state, engine, settings, number) -> State, rows of metrics

A method that can place clients which joined later also has `assign_newcomers`.
"""

from importlib import import_module
from types import ModuleType

from clustered_fl.errors import InputError

# Text, so that a run imports, and its code fingerprint covers, only the method it uses.
METHODS = {
    "fedavg": "clustered_fl.methods.fedavg",
    "local": "clustered_fl.methods.local",
    "oracle": "clustered_fl.methods.oracle",
    "cfl": "clustered_fl.methods.cfl",
}


def method_module(name: str) -> str:
    """Dotted name of the module of method `name`.

    Raises:
        InputError: if there is no such method.
    """
    if name not in METHODS:
        raise InputError(f"unknown method {name!r}; allowed are {', '.join(sorted(METHODS))}")
    return METHODS[name]


def load_method(name: str) -> ModuleType:
    """Import method `name`."""
    return import_module(method_module(name))
