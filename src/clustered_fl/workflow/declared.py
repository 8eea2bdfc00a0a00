"""Settings classes and signatures, built from source without importing PyTorch.

The plan checks every setting of a ledger before anything runs, and importing the modules that
define them takes seconds. A definition is therefore executed in isolation, with the names in its
annotations, defaults and checks; functions are reduced to their signatures. Modules without slow
imports are imported normally.
"""

import ast
from copy import deepcopy
from functools import cache
from importlib import import_module
from typing import Any

from clustered_fl.errors import InputError
from clustered_fl.workflow.source import Function, Source, Target, read

# Packages whose import takes a tenth of a second or more.
SLOW = {"matplotlib", "numba", "papermill", "safetensors", "scipy", "seaborn", "sklearn", "torch"}
SLOW |= {"torchvision", "umap"}

# Methods that check values; other methods of a class are left out.
CHECKS = ("__post_init__",)


@cache
def declared(module: str, name: str, given: tuple[str, ...] = ()) -> Any:
    """A class or function of the package, for checking arguments only.

    Args:
        module, name: module that defines it, and its name.
        given: arguments of a function that are not to be checked.
    Raises: InputError if the module does not define it.
    """
    source = read(module, "the plan")
    if name in source.imports and name not in source.definitions:
        return _resolved(source.imports[name])
    if name not in source.definitions:
        raise InputError(f"{module} has no {name}")
    if not isinstance(source.definitions[name], Function) and not _is_slow(module):
        return getattr(import_module(module), name)
    statement = ast.fix_missing_locations(_essential(source.definitions[name], given))
    namespace = _namespace(source, statement) if _is_slow(module) else vars(import_module(module))
    namespace = {**namespace, "__name__": module}
    exec(compile(ast.Module([statement], []), module, "exec"), namespace)
    return namespace[name]


def _namespace(source: Source, statement: ast.stmt) -> dict[str, Any]:
    """Values of the names in a definition."""
    names = [each for each in ast.walk(statement) if isinstance(each, ast.Name)]
    used = {each.id for each in names if isinstance(each.ctx, ast.Load)}
    used -= {getattr(statement, "name", "")}  # a class may refer to itself
    meant = {each: source.target(ast.Name(each), frozenset()) for each in used}
    return {each: _resolved(target) for each, target in meant.items() if target}


def _essential(statement: ast.stmt, given: tuple[str, ...]) -> ast.stmt:
    """A definition reduced to what is needed to check its arguments."""
    found = deepcopy(statement)
    if isinstance(found, Function):
        found.body, found.returns = [ast.Pass()], None
        for argument in (*found.args.args, *found.args.kwonlyargs):
            if argument.arg in given:
                argument.annotation = None
    if isinstance(found, ast.ClassDef):
        found.body = [part for part in found.body if _is_field(part)] or [ast.Pass()]
    return found


def _is_field(part: ast.stmt) -> bool:
    if isinstance(part, Function):
        decorators = map(ast.unparse, part.decorator_list)
        return part.name in CHECKS or any("validator" in each for each in decorators)
    return isinstance(part, ast.Assign | ast.AnnAssign)


def _resolved(target: Target) -> Any:
    """The value of a name; a slow module is replaced by `_Unknown` or built lazily."""
    if not target.is_first_party:
        return _foreign(target)
    if target.symbol is None:
        return _Members(target.module)
    if not _is_slow(target.module):
        return getattr(import_module(target.module), target.symbol)
    return declared(target.module, target.symbol)


def _foreign(target: Target) -> Any:
    if target.module.partition(".")[0] in SLOW:
        return Any if target.symbol else _Unknown()
    module = import_module(target.module)
    return module if target.symbol is None else getattr(module, target.symbol)


class _Unknown:
    """Placeholder for a slow module; every attribute is accepted as `Any`."""

    def __getattr__(self, name: str) -> Any:
        return Any


class _Members:
    """A module of the package whose definitions are built on first use."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return declared(self._module, name)


@cache
def _is_slow(module: str) -> bool:
    """Whether importing a module imports a slow package, directly or indirectly."""
    return _slow(module, set())


def _slow(module: str, seen: set[str]) -> bool:
    if module in seen:
        return False
    seen.add(module)
    source = read(module, "the plan")
    parent = module.rpartition(".")[0]
    targets = [*source.imported, *([Target(parent)] if parent else [])]
    foreign = {each.module.partition(".")[0] for each in targets if not each.is_first_party}
    if foreign & SLOW:
        return True
    own = {each.module for each in targets if each.is_first_party}
    return any(_slow(each, seen) for each in own)
