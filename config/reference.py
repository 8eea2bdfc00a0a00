"""Write `config/README.md`: every key and every setting, from the classes that check them.

    python config/reference.py > config/README.md

A test compares. What a setting means is read from the docstring of the class or function that has
it, what it may be from its type.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import is_dataclass
from importlib import import_module
from inspect import cleandoc, getdoc, isfunction, signature
from typing import Annotated, Any, NamedTuple, get_args

from pydantic import BaseModel, TypeAdapter
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from clustered_fl import groupings, methods
from clustered_fl.claims.binding import section_of
from clustered_fl.claims.bounds import Measured
from clustered_fl.claims.names import ARGUMENTS
from clustered_fl.data import modifiers
from clustered_fl.data.partitions import GIVEN
from clustered_fl.encoders.training import TrainingSettings
from clustered_fl.engine.workload import LocalSettings
from clustered_fl.ledger import schema, tables
from clustered_fl.ledger.settings import Settings
from clustered_fl.ledger.written import Written
from clustered_fl.methods.state import RoundSettings
from clustered_fl.models import MODELS
from clustered_fl.models.autoencoder import AUTOENCODERS
from clustered_fl.models.inputs import ImageInputs, ReconstructedInputs, WordInputs, inputs_of
from clustered_fl.options import modules_of

INTRODUCTION = """# Configuration

`config.yaml` says what is computed. `papers/` has one ledger per paper, which says what can be
computed. `datasets.yaml` says where datasets come from; comments at its top explain the keys.
Settings are checked before anything runs, and an error names the unknown or invalid key or value.

This file is generated, and a test checks that it is up to date:

    python config/reference.py > config/README.md"""

# What a job gives itself.
OF_THE_DATA = {"channels", "side", "classes"}
PAPERS = ("cfl", "flt", "repa", "ground")

SECTION = re.compile(r"(?:Attributes|Args):\n((?:[ \t]+.*\n?|\n)+)")
ENTRY = re.compile(r"^ {4}([\w, ]+): ((?:.*\n?)(?:^ {5,}.*\n?)*)", re.MULTILINE)


class Setting(NamedTuple):
    """A row of a table."""

    name: str
    allowed: str
    default: str
    meaning: str
    parts: tuple[type, ...] = ()


def main() -> None:
    """Print the file."""
    settings = _section("##", "`config.yaml`", *_of_model(Settings))
    parts = (INTRODUCTION, settings, _ledger(), _training(), _clients(), _related(), _measures())
    print("\n\n".join(parts))


def _ledger() -> str:
    """The keys of a ledger, part by part."""
    run = set(tables.Layer.model_fields)
    parts = [
        _section("##", "`papers/<paper>.yaml`", *_of_model(Written)),
        _section("###", "An entry of `encoders`", *_of_model(schema.Encoder)),
        _section("###", "An entry of `groupings`", *_of_model(schema.Grouping)),
        _section("###", "An entry of `runs`", *_of_model(schema.Run)),
        _section("###", "The key `sweep` of a run", *_of_model(schema.Sweep)),
        _section("###", "An entry of `tables`", *_of_model(tables.Table)),
        _section("###", "An entry of `columns` of a table", *_of_model(tables.Column, run)),
        _section("###", "An entry of `rows` of a table", *_of_model(tables.Row, run)),
        _section("###", "The key `needs` of a row", *_of_model(tables.Needs)),
        _section("###", "The key `traffic` of a row", *_of_model(tables.Traffic)),
        _section("###", "An entry of `studies`", *_of_model(schema.Study)),
        _section("###", "An entry of `artefacts`", *_of_model(schema.Artefact)),
        _section("###", "The key `cells` of an artefact", *_of_model(schema.Selection)),
        _section("###", "An entry of `claims`", *_of_model(schema.Claim)),
    ]
    return "\n\n".join(parts)


def _training() -> str:
    """`training`, `method` and `model` of runs and encoders."""
    title = "`method` of a run: settings of all methods"
    parts = [
        "## Training",
        _section("###", "`training` of a run", *_of_dataclass(LocalSettings)),
        _section("###", title, *_of_dataclass(RoundSettings)),
    ]
    for name, module in _modules("methods", methods.SHARED):
        hidden = {*RoundSettings.__dataclass_fields__, *methods.OF_A_GROUPING}
        _, own = _of_dataclass(module.Settings, hidden)
        parts.append(_section("###", f"`method: {{name: {name}}}`", _summary(module), own))
    for kind in (ImageInputs, ReconstructedInputs, WordInputs):
        about, own = _of_dataclass(kind)
        named = ", ".join(f"`{name}`" for name in MODELS if inputs_of(name) is kind)
        parts.append(_section("###", f"`model` of a run: {named}", about, own))
    for name, (module, function) in MODELS.items():
        found = _of_function(getattr(import_module(module), function), OF_THE_DATA)
        parts.append(_section("###", f"`model: {{name: {name}}}`", *found))
    for name, function in AUTOENCODERS.items():
        found = _of_function(function, OF_THE_DATA)
        parts.append(_section("###", f"`model: {{name: {name}}}` of an encoder", *found))
    parts.append(_section("###", "`training` of an encoder", *_of_dataclass(TrainingSettings)))
    return "\n\n".join(parts)


def _clients() -> str:
    """`federation` of runs and groupings."""
    general = _of_function(modifiers.modified, GIVEN)
    parts = ["## Clients", _section("###", "`federation` of any kind", *general)]
    for name, module in _modules("data.partitions"):
        _, own = _of_function(module.build, GIVEN)
        parts.append(_section("###", f"`federation: {{kind: {name}}}`", _summary(module), own))
    return "\n\n".join(parts)


def _related() -> str:
    """`method` of groupings."""
    parts = ["## Groupings"]
    for name, module in _modules("groupings", groupings.SHARED):
        _, own = _of_dataclass(module.Settings)
        title = f"`method: {{name: {name}}}` of a grouping"
        parts.append(_section("###", title, _summary(module), own))
    return "\n\n".join(parts)


def _measures() -> str:
    """`measure` of claims."""
    about = "Runs, groupings and studies are named, cells of a table by `column.row`; `*` is any."
    parts = [f"## Measures of claims\n\n{about}"]
    for module in ("measures", "protocol", "gap", "relatedness", "validation", *PAPERS):
        found = import_module(f"clustered_fl.claims.{module}")
        for name, function in vars(found).items():
            if _is_measure(function, found.__name__):
                full = name if module == "measures" else f"{module}.{name}"
                title = f"`measure: {{name: {full}}}`"
                about, own = _of_function(function, {"evidence"}, ARGUMENTS)
                parts.append(_section("###", title, about, own))
    return "\n\n".join(parts)


def _is_measure(function: Any, module: str) -> bool:
    if not isfunction(function) or function.__module__ != module or function.__name__[0] == "_":
        return False
    found = signature(function)
    return "evidence" in found.parameters and found.return_annotation == Measured


def _modules(package: str, shared: Iterable[str] = ()) -> Iterator[tuple[str, Any]]:
    full = f"clustered_fl.{package}"
    return ((name, import_module(f"{full}.{name}")) for name in modules_of(full, tuple(shared)))


def _section(level: str, title: str, about: str, settings: list[Setting]) -> str:
    """A heading, a sentence and a table; then one each for settings that have settings."""
    head = f"{level} {title}\n\n{about}"
    if not settings:
        return head
    rows = [
        f"| `{each.name}` | {each.allowed} | {each.default} | {each.meaning} |" for each in settings
    ]
    table = ["| key | what | default | meaning |", "|---|---|---|---|", *rows]
    inner = [
        _section(f"{level}#", f"`{each.name}` of it", *_of_dataclass(part))
        for each in settings
        for part in each.parts
    ]
    return "\n\n".join(["\n".join([f"{head}\n", *table]), *inner])


def _of_model(model: type[BaseModel], hidden: Iterable[str] = ()) -> tuple[str, list[Setting]]:
    """First line and keys of a part of a file."""
    found = [
        _setting(name, field.annotation, field, field.description or "")
        for name, field in model.model_fields.items()
        if name not in hidden
    ]
    return _summary(model), found


def _of_dataclass(kind: type, hidden: Iterable[str] = ()) -> tuple[str, list[Setting]]:
    """First line and settings of a class of settings."""
    meanings = {}
    for base in reversed(kind.__mro__):
        meanings |= _meanings(base.__doc__ or "")
    found = [
        _setting(name, field.annotation, field, meanings.get(name, ""))
        for name, field in kind.__pydantic_fields__.items()
        if name not in hidden
    ]
    return _summary(kind), found


def _of_function(
    function: Callable, given: Iterable[str], glossary: Mapping[str, str] = {}
) -> tuple[str, list[Setting]]:
    """First line and arguments of a function, but those that are given to it.

    What its docstring does not explain is looked up in the glossary.
    """
    meanings = {**glossary, **_meanings(getdoc(function) or "")}
    found = []
    for name, each in signature(function).parameters.items():
        if name not in given:
            default = PydanticUndefined if each.default is each.empty else each.default
            field = FieldInfo.from_annotated_attribute(each.annotation, default)
            found.append(_setting(name, each.annotation, field, meanings.get(name, "")))
    return _summary(function), found


def _setting(name: str, annotation: Any, field: FieldInfo, meaning: str) -> Setting:
    default = field.get_default(call_default_factory=True)
    parts = tuple(_parts(annotation))
    if default is PydanticUndefined:
        shown = "required"
    elif default is None:
        shown = "unset"
    else:
        shown = "its own" if parts else f"`{_json(default)}`"
    return Setting(name, _type(field), shown, re.sub(r"\bNone\b", "unset", meaning), parts)


def _parts(annotation: Any) -> Iterator[type]:
    """Classes of settings within a type; keys of a ledger have sections of their own."""
    if is_dataclass(annotation) and isinstance(annotation, type):
        yield annotation
    for inner in get_args(annotation):
        yield from _parts(inner)


def _json(value: Any) -> str:
    return json.dumps(json.loads(TypeAdapter(Any).dump_json(value, exclude_none=True)))


def _type(field: FieldInfo) -> str:
    """What a setting may be, in words."""
    whole = Annotated[(field.annotation, *field.metadata)] if field.metadata else field.annotation
    section = section_of(whole)
    if section:
        return f"names of {section}"
    found = TypeAdapter(whole).json_schema()
    return _words(found, found.get("$defs", {}))


LIMITS = {"minimum": ">=", "exclusiveMinimum": ">", "maximum": "<=", "exclusiveMaximum": "<"}


def _words(found: Mapping[str, Any], known: Mapping[str, Any]) -> str:
    """A JSON schema in words."""
    if "$ref" in found:
        return _words(known[found["$ref"].rpartition("/")[2]], known)
    if "anyOf" in found:
        parts = [_words(each, known) for each in found["anyOf"] if each.get("type") != "null"]
        return " or ".join(dict.fromkeys(parts))
    if "enum" in found or "const" in found:
        values = found.get("enum", [found.get("const")])
        return ", ".join(f"`{each}`" for each in values)
    kind = {"object": "mapping"}.get(found.get("type", "any"), found.get("type", "any"))
    if kind == "array":
        inner = found.get("items") or next(iter(found.get("prefixItems", [])), {})
        return f"list of {_words(inner, known)}"
    limits = [f"{sign} {found[key]:g}" for key, sign in LIMITS.items() if key in found]
    return " ".join([kind, " and ".join(limits)]).strip()


def _summary(thing: Any) -> str:
    """The first paragraph of a docstring, on one line."""
    return " ".join((getdoc(thing) or "").split("\n\n")[0].split())


def _meanings(doc: str) -> dict[str, str]:
    """Name -> meaning, from the sections "Attributes" and "Args" of a docstring."""
    found: dict[str, str] = {}
    for section in SECTION.findall(cleandoc(doc)):
        for names, text in ENTRY.findall(section):
            meaning = " ".join(text.split()).removesuffix(".").replace("|", "\\|")
            found |= dict.fromkeys(names.split(", "), meaning)
    return found


if __name__ == "__main__":
    main()
