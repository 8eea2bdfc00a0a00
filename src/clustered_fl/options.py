"""A ledger's names become modules and its settings arguments; one sentence says what is wrong."""

from collections.abc import Callable, Collection, Mapping
from importlib.util import find_spec
from inspect import signature
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ConfigDict, ValidationError, validate_call

from clustered_fl.errors import InputError

Made = TypeVar("Made")

STRICT = ConfigDict(extra="forbid", arbitrary_types_allowed=True)
"""For dataclasses of settings: an unknown setting is an error, not ignored."""


def module_called(name: str, package: str, what: str, shared: Collection[str] = ()) -> str:
    """Dotted name of the module `name` of `package`: adding one is adding a file, and no more.

    Nothing is imported, and there is no table of names, so that a new module changes no code
    fingerprint but its own.

    Args:
        name: from the ledger.
        package: dotted name.
        what: how a user knows such modules, the start of the sentence.
        shared: modules of the package that are not to be named.
    Raises:
        InputError: if there is no such module.
    """
    folder = Path(find_spec(package).origin).parent
    names = sorted({path.stem for path in folder.glob("*.py")} - {"__init__", *shared})
    if name not in names:
        raise InputError(f"unknown {what} {name!r}; allowed are {', '.join(names)}")
    return f"{package}.{name}"


def call(target: Callable[..., Made], what: str, options: Mapping[str, Any], **given: Any) -> Made:
    """Call `target` with a user's `options`, checked against its annotations.

    Args:
        target: a function, or a pydantic dataclass.
        what: how a user knows it, the start of the sentence.
        options: from the ledger.
        given: arguments that are ours to give and not the user's to set.
    Raises:
        InputError: if an option is unknown, missing or not allowed.
    """
    for name in options.keys() & given.keys():
        raise InputError(_unknown(target, what, name, given))
    is_dataclass = hasattr(target, "__pydantic_fields__")
    checked = target if is_dataclass else validate_call(target, config=STRICT)
    try:
        return checked(**given, **options)
    except ValidationError as error:
        raise InputError(_sentence(error, target, what, given)) from error


def _sentence(error: ValidationError, target: Callable, what: str, given: Mapping[str, Any]) -> str:
    """The first problem in words: what was wrong, where, what is allowed."""
    problem = error.errors()[0]
    kind, names = problem["type"], [str(name) for name in problem["loc"]]
    if kind == "unexpected_keyword_argument":
        return _unknown(_part(target, names[:-1]), what, ".".join(names), given)
    if kind.startswith("missing"):
        return f"{what} needs the setting {names[0]!r}, which is missing"
    if isinstance(problem.get("ctx", {}).get("error"), InputError):
        return str(problem["ctx"]["error"])
    reason = problem["msg"][0].lower() + problem["msg"][1:]
    return f"{what}: {'.'.join(names)} = {problem['input']!r} is not allowed: {reason}"


def _part(target: Callable, names: list[str]) -> Callable | None:
    """The settings within settings that have these names; None for those in a list."""
    for name in names:
        known = getattr(target, "__pydantic_fields__", {})
        if name not in known:
            return None
        target = known[name].annotation
    return target


def _unknown(target: Callable | None, what: str, name: str, given: Mapping[str, Any]) -> str:
    if target is None:
        return f"{what} has no setting {name!r}"
    allowed = [option for option in signature(target).parameters if option not in given]
    return f"{what} has no setting {name!r}; allowed are {', '.join(allowed) or 'none'}"
