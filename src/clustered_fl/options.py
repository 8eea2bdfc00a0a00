"""From names and settings in a ledger to modules and arguments, with one-sentence errors."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import wraps
from importlib import import_module
from importlib.util import find_spec
from inspect import isroutine, signature
from numbers import Integral
from pathlib import Path
from reprlib import Repr
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, ValidationError, validate_call

from clustered_fl.errors import InputError

Made = TypeVar("Made")
Model = TypeVar("Model", bound=BaseModel)

STRICT = ConfigDict(extra="forbid", arbitrary_types_allowed=True, allow_inf_nan=False)
"""For dataclasses of settings: an unknown setting is an error, not ignored."""
SEEDS = 2**32
"""Seeds are below this, because some libraries take 32 bits."""


class Strict(BaseModel):
    """A part of a file under `config/`: immutable, and unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


def module_called(name: str, package: str, what: str, shared: Collection[str] = ()) -> str:
    """Dotted name of the module `name` of `package`; a new module needs no registration.

    There is no table of names, and nothing is imported, so a new module changes no other code
    fingerprint.

    Args:
        name: from the ledger.
        package: dotted name.
        what: what a user calls such a module; the start of the error message.
        shared: modules of the package that a ledger cannot name.
    Raises: InputError if there is no such module.
    """
    names = modules_of(package, shared)
    if name not in names:
        raise InputError(f"unknown {what} {name!r}; allowed are {', '.join(names)}")
    return f"{package}.{name}"


def modules_of(package: str, shared: Collection[str] = ()) -> list[str]:
    """Names of the modules of a package that a ledger may use, sorted."""
    folder = Path(find_spec(package).origin).parent
    return sorted({path.stem for path in folder.glob("*.py")} - {"__init__", *shared})


def definition(module: str, name: str) -> Any:
    """What a module defines by a name, or None if there is no such module or name.

    Raises: whatever the import raises if the module exists.
    """
    try:
        found = import_module(module)
    except ModuleNotFoundError as error:
        if f"{module}.".startswith(f"{error.name}."):
            return None
        raise
    return getattr(found, name, None)


def call(target: Callable[..., Made], what: str, options: Mapping[str, Any], **given: Any) -> Made:
    """Call `target` with a user's `options`, checked against its annotations.

    Args:
        target: a function, or a pydantic dataclass.
        what: what a user calls it; the start of the error message.
        options: from the ledger.
        given: arguments that the program sets and a user cannot.
    Raises: InputError if an option is unknown, missing or not allowed.
    """
    for name in options.keys() & given.keys():
        raise InputError(_unknown(target, what, name, "setting", given))
    is_dataclass = hasattr(target, "__pydantic_fields__")
    checked = target if is_dataclass else _exact(target, what, options)
    try:
        made = checked(**given, **options)
    except ValidationError as error:
        raise InputError(refusal(error, what, target, given=given)) from error
    if is_dataclass:
        _require_kept(options, made, what)
    return made


def _exact(target: Callable[..., Made], what: str, options: Mapping[str, Any]) -> Callable:
    """A wrapper of `target` that validates arguments and refuses silent type conversions."""

    @wraps(target)
    def exact(*arguments: Any, **named: Any) -> Made:
        bound = signature(target).bind(*arguments, **named).arguments
        _require_kept(options, bound, what)
        return target(*arguments, **named)

    return validate_call(exact, config=STRICT)


def validated(model: type[Model], what: str, content: Any, noun: str = "setting") -> Model:
    """`content` as a `model`.

    Raises: InputError if a key is unknown or missing, or a value is not allowed.
    """
    try:
        made = model.model_validate(content)
    except ValidationError as error:
        raise InputError(refusal(error, what, model, noun)) from error
    _require_kept(content, made, what)
    return made


def with_texts(settings: Any, what: str, naming: str = "name") -> dict[str, Any]:
    """Settings from Python as a dictionary; their names, and the value of `naming`, are texts.

    Args:
        what: what a user calls them; the start of the error message.
    Raises: InputError if they are no mapping, or one of these is no text.
    """
    if not isinstance(settings, Mapping):
        raise InputError(f"{what} must be a dict of settings, not {type(settings).__name__}")
    for key in settings:
        if not isinstance(key, str):
            raise InputError(f"{what} has the setting {_shown(key)}; its name must be a text")
    if not isinstance(name := settings.get(naming, ""), str):
        raise InputError(f"{what}: {naming} = {_shown(name)} is not allowed; it must be a text")
    return dict(settings)


def require_whole(minimum: int, **values: Any) -> None:
    """Refuse arguments that are no whole numbers or below a minimum.

    Args:
        values: name of an argument -> what was given.
    Raises: InputError naming the first that is not allowed.
    """
    for name, value in values.items():
        if not isinstance(value, Integral) or isinstance(value, bool) or value < minimum:
            raise InputError(
                f"{name} = {_shown(value)} is not allowed; it must be a whole number, at least "
                f"{minimum}"
            )


def require_seed(seed: Any) -> None:
    """Refuse what is no seed for every library; InputError."""
    require_whole(0, seed=seed)
    if seed >= SEEDS:
        raise InputError(f"seed = {seed} is not allowed; it must be below 2**32")


def _require_kept(given: Any, made: Any, what: str) -> None:
    """Refuse `true` for 1 and "3" for 3; pydantic's strict mode also refuses lists as tuples."""
    for place, value, kind in _changed(given, made, ""):
        raise InputError(f"{what}: {place} = {_shown(value)} is not allowed: it must be {kind}")


def _changed(given: Any, made: Any, place: str) -> Iterator[tuple[str, Any, str]]:
    """Conversions between text, number and truth value: place, value given, kind wanted."""
    if given is made:
        return
    if isinstance(given, Mapping):
        for key, each in given.items():
            inner = made.get(key) if isinstance(made, Mapping) else getattr(made, str(key), each)
            yield from _changed(each, inner, f"{place}.{key}".removeprefix("."))
    elif isinstance(given, list | tuple) and isinstance(made, list | tuple):
        for number, (each, inner) in enumerate(zip(given, made, strict=False)):
            yield from _changed(each, inner, f"{place}.{number}")
    elif (wanted := _kind(made)) and _kind(given) not in ("", wanted):
        yield place, given, wanted


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, str):
        return "a text"
    return "a number" if isinstance(value, int | float) else ""


def refusal(
    error: ValidationError, what: str, target: Any, noun: str = "setting", given: Collection = ()
) -> str:
    """The first problem in words: what was wrong, where, what is allowed.

    Args:
        what: what a user calls the target; the start of the sentence.
        target: the function, dataclass or model that raised `error`.
        noun: what its keys are called.
        given: keys that a user cannot set.
    """
    problems, unknown = error.errors(), ("unexpected_keyword_argument", "extra_forbidden")
    # A misspelt key is also missing; its spelling says more.
    problem = next((each for each in problems if each["type"] in unknown), problems[0])
    kind, place = problem["type"], [str(part) for part in problem["loc"]]
    name = ".".join(place)
    if kind in unknown:
        return _unknown(_inside(target, place[:-1]), what, name, noun, given)
    if kind.startswith("missing"):
        return f"{what} needs the {noun} {name!r}, which is missing"
    if isinstance(problem.get("ctx", {}).get("error"), InputError):
        return str(problem["ctx"]["error"])
    reason = problem["msg"].removeprefix("Value error, ").partition(" or instance of ")[0]
    reason = reason[0].lower() + reason[1:]
    found = f"{name} = {_shown(problem['input'])}" if name else _shown(problem["input"])
    return f"{what}: {found} is not allowed: {reason}"


def _shown(value: Any) -> str:
    """A value, shortened to one line."""
    short = Repr()
    short.maxstring = short.maxlong = short.maxother = 60
    return short.repr(value)


def _unknown(target: Any, what: str, name: str, noun: str, given: Collection[str]) -> str:
    fields = fields_of(target)
    if fields is None:
        return f"{what} has no {noun} {name!r}"
    allowed = [field for field in fields if field not in given]
    return f"{what} has no {noun} {name!r}; allowed are {', '.join(allowed) or 'none'}"


def fields_of(target: Any) -> dict[str, Any] | None:
    """Name -> annotation of what a model, dataclass or function takes; None for anything else."""
    known = getattr(target, "model_fields", getattr(target, "__pydantic_fields__", None))
    if known is not None:
        return {name: field.annotation for name, field in known.items()}
    if isroutine(target):
        return {name: each.annotation for name, each in signature(target).parameters.items()}
    return None


def _inside(target: Any, place: Iterable[str]) -> Any:
    """The type at a place within a model: of a field, a mapping's values or a list's items."""
    for name in place:
        fields = fields_of(target)
        inner = get_args(target)[-1:] if fields is None else [fields.get(name)]
        target = _settled(inner[0]) if inner else None
    return target


def _settled(annotation: Any) -> Any:
    """An annotation without metadata; for a union, its member that has fields or items."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return _settled(get_args(annotation)[0])
    if origin in (Union, UnionType):
        parts = [_settled(each) for each in get_args(annotation)]
        return next((each for each in parts if fields_of(each) or get_args(each)), None)
    return annotation
