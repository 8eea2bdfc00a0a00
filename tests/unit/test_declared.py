"""Settings classes and signatures that are made without PyTorch are those that the jobs use."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import is_dataclass
from importlib import import_module
from inspect import isfunction, signature
from typing import Any, get_args

import pytest
from pydantic import ValidationError

from clustered_fl import groupings, methods
from clustered_fl.claims.names import Refers
from clustered_fl.data.drift import Drift
from clustered_fl.errors import InputError
from clustered_fl.models import MODELS
from clustered_fl.models.autoencoder import AUTOENCODERS
from clustered_fl.options import modules_of
from clustered_fl.workflow.declared import declared
from clustered_fl.workflow.fingerprint import ROOT

PACKAGES = {"methods": methods.SHARED, "groupings": groupings.SHARED}
CLASSES = [
    (f"clustered_fl.{package}.{name}", "Settings")
    for package, shared in PACKAGES.items()
    for name in modules_of(f"clustered_fl.{package}", shared)
]
CLASSES += [("clustered_fl.engine.workload", "LocalSettings")]
CLASSES += [("clustered_fl.encoders.training", "TrainingSettings")]


def public_functions(package: str) -> Iterator[tuple[str, str]]:
    """Functions of the modules of a package, where they are defined."""
    for name in modules_of(package):
        module = import_module(f"{package}.{name}")
        for key, value in vars(module).items():
            if isfunction(value) and value.__module__ == module.__name__ and key[0] != "_":
                yield module.__name__, key


FUNCTIONS = [*MODELS.values(), *((f.__module__, f.__name__) for f in AUTOENCODERS.values())]
for papers in ("claims", "theory.cfl", "theory.flt"):
    FUNCTIONS += public_functions(f"clustered_fl.{papers}")

PROBES = (None, True, -1, 0, 1, 3, 0.5, 2.5, "all", "none of these", [], [0], [0, 1], {}, {"a": 1})


def parts(kind: type) -> dict[str, type | None]:
    """Field -> the class of settings that it may hold, if any."""
    return {
        name: next(
            (each for each in (field.annotation, *get_args(field.annotation)) if is_settings(each)),
            None,
        )
        for name, field in kind.__pydantic_fields__.items()
    }


def is_settings(kind: Any) -> bool:
    return isinstance(kind, type) and is_dataclass(kind)


def inputs(kind: type) -> Iterator[dict[str, Any]]:
    """Each field with values of all sorts, also deeper; and an unknown one."""
    yield {"colour": "blue"}
    for name, part in parts(kind).items():
        yield from ({name: probe} for probe in PROBES)
        yield from ({name: inner} for inner in (inputs(part) if part else ()))


def outcome(kind: type, given: dict[str, Any]) -> Any:
    """What is then set, as text, or what is wrong and where."""
    required = {name for name, field in kind.__pydantic_fields__.items() if field.is_required()}
    try:
        found = kind(**(dict.fromkeys(required, 1) | given))
        return {name: repr(getattr(found, name)) for name in given}
    except ValidationError as error:
        return [(each["type"], each["loc"], each["msg"]) for each in error.errors()]


def defaults(kind: type) -> dict[str, str]:
    """Of a default that a function makes no more than that, because only its signature is made."""
    return {
        name: "made"
        if isfunction(each.default_factory)
        else repr(each.get_default(call_default_factory=True))
        for name, each in kind.__pydantic_fields__.items()
    }


@pytest.mark.parametrize(("module", "name"), CLASSES)
def test_a_settings_class_has_the_same_fields_defaults_and_refusals(module, name):
    real, made = getattr(import_module(module), name), declared(module, name)
    assert defaults(made) == defaults(real)
    tried = list(inputs(real))
    assert [outcome(made, given) for given in tried] == [outcome(real, given) for given in tried]


def shown(function: Any, given: tuple[str, ...]) -> list[tuple[str, str, str]]:
    """Name, default and type of every argument."""
    return [
        (name, repr(each.default), "" if name in given else str(each.annotation))
        for name, each in signature(function).parameters.items()
    ]


@pytest.mark.parametrize(("module", "name"), FUNCTIONS)
def test_a_function_has_the_same_arguments_of_the_same_types(module, name):
    given = ("evidence",)
    real, made = getattr(import_module(module), name), declared(module, name, given)
    assert shown(made, given) == shown(real, given)


def test_what_imports_nothing_slow_is_the_module_s_own():
    """Else a mark of an argument, or an error, would not be known as such."""
    assert declared("clustered_fl.data.drift", "Drift") is Drift
    assert declared("clustered_fl.claims.names", "Refers") is Refers
    measure = declared("clustered_fl.claims.measures", "lead", ("evidence",))
    (runs,) = get_args(signature(measure).parameters["of"].annotation)
    assert isinstance(runs.__metadata__[0], Refers)


@pytest.mark.parametrize(
    ("module", "sentence"),
    [
        ("clustered_fl.methods.cfl", "clustered_fl.methods.cfl has no Setings"),
        ("clustered_fl.methods.clf", "the plan names the module clustered_fl.methods.clf, which"),
    ],
)
def test_what_is_not_defined_is_one_sentence(module, sentence):
    with pytest.raises(InputError, match=sentence):
        declared(module, "Setings")


def test_nothing_slow_is_imported():
    program = (
        "import sys; from clustered_fl.workflow.declared import SLOW, declared\n"
        f"for module, name in {CLASSES + FUNCTIONS!r}: declared(module, name, ('evidence',))\n"
        "print(SLOW & sys.modules.keys())"
    )
    environment = {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
