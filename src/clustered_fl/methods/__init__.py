"""Methods decide which clients average together; each is a module with this interface.

    init(engine, settings) -> State
    round_(state, engine, settings, number) -> State, rows of metrics

`number` is the number of completed rounds. The method's name in the ledger is the module's name. A
method that can place newcomers at the end also has `assign_newcomers`, which returns one entry for
each (`state.placed`), and `newcomer_groups` if it can place them in every round. A method that
prepares its tests, for example by letting clients choose their clusters, also has
`before_scores(state, engine, settings, number)`, which may change the state. `state.finished` ends
the run. If `Settings` has the fields `OF_A_GROUPING`, they receive what the run's grouping
(`clustered_fl.groupings`) has found.
"""

from collections.abc import Container
from importlib import import_module
from types import ModuleType

from clustered_fl.errors import InputError
from clustered_fl.options import module_called

SHARED = ("groups", "state")
OF_A_GROUPING = ("relatedness", "placed", "later")
"""Settings that a method receives from the grouping of its run, and a user cannot give."""


def method_module(name: str) -> str:
    """Dotted name of the module of method `name`; InputError if there is none."""
    return module_called(name, "clustered_fl.methods", "method", SHARED)


def load_method(name: str) -> ModuleType:
    """Import method `name`."""
    return import_module(method_module(name))


def require_placed(name: str, newcomers: bool, defined: Container[str]) -> None:
    """Refuse to test newcomers with a method that cannot place them in every round.

    Args:
        newcomers: the setting of the method.
        defined: names in its module.
    Raises: InputError.
    """
    if newcomers and "newcomer_groups" not in defined:
        raise InputError(
            f"method {name} places no newcomers while it trains; drop `newcomers: true` from it"
        )
