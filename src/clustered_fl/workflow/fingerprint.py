"""What code means, as a short string: it changes when results may change, and only then.

Snakemake cannot see which modules a shell command imports, and a commit id or a file's time changes
with every comment. A rule therefore carries `params: code=fingerprint("clustered_fl.methods.cfl")`:
the meanings of all definitions that are used, wherever in the package they stand. Comments,
docstrings, formatting, imports, names of modules and definitions that nothing uses do not count,
so that code can be moved and modules renamed; a change of logic in anything that is used reruns
exactly its dependants.

Not seen: imports by a name that is computed at run time (a rule names those modules itself), files
that code reads (a rule names those as input), and other packages (requirements.txt pins them).

A module that defines `__numerics__` computes what others compute, to rounding and faster. Its code
does not count, only the value (`clustered_fl.models.numerics`).
"""

import ast
from functools import cache
from pathlib import Path

from clustered_fl.files import digest
from clustered_fl.workflow.source import ROOT, Source, Target, bound, parsed, read

NUMERICS = "__numerics__"

# What a field without content looks like; Python versions differ in which of them they have.
_NOTHING = {"None", "[]"}


def fingerprint(*entries: str, root: Path = ROOT) -> str:
    """Digest of the meaning of some code and of everything first-party that it uses.

    Nothing is imported, so it takes milliseconds and needs none of the modules' dependencies. The
    result does not depend on the Python version that computes it (3.11 to 3.13).

    Args:
        entries: dotted names of modules, or "module:name" for one definition; order is irrelevant.
        root: the folder that holds the package.

    Returns:
        16 hex digits.

    Raises: InputError if a module, or one that it uses of the package, does not exist.
    """
    wanted = [(_target(entry), "a fingerprint") for entry in entries]
    return digest(sorted(_meanings(wanted, root)))


of_code = cache(fingerprint)
"""The same of the package as it is when first asked: many entries of a plan share their code."""


def _target(entry: str) -> Target:
    module, _, symbol = entry.partition(":")
    return Target(module, symbol or None)


def fingerprint_of_text(text: str, *entries: str, root: Path = ROOT) -> str:
    """The same of a piece of code that is no module, such as the cells of a notebook."""
    source = parsed(text, "text", root=root)
    wanted = [(target, "text") for node in _statements(source) for _, target in source.names(node)]
    wanted += [(_target(entry), "text") for entry in entries]
    used = [(target, user) for target, user in wanted if target.is_first_party]
    return digest(sorted(_meanings(used, root)))


def _statements(source: Source) -> list[ast.stmt]:
    """All statements of a module that define or do something, each once."""
    unique = {id(node): node for node in (*source.definitions.values(), *source.effects)}
    return list(unique.values())


def _meanings(wanted: list[tuple[Target, str]], root: Path) -> set[str]:
    """Digests of the meaning of everything that is wanted, and of what that uses in turn."""
    found: set[str] = set()
    seen: set[Target] = set()
    modules: set[str] = set()
    while wanted:
        target, wanted_by = wanted.pop()
        if target in seen:
            continue
        seen.add(target)
        source = read(target.module, wanted_by, root)
        if NUMERICS in source.definitions:
            wanted += [(used, target.module) for used in _used(source, NUMERICS)]
            continue
        nodes = _nodes(source, target.symbol)
        if nodes is None:  # a name that the module has from elsewhere, or makes as it runs
            elsewhere = source.imports.get(target.symbol or "")
            known = elsewhere or Target(target.module)
            wanted += [(known, target.module)] if known.is_first_party else []
            continue
        if target.symbol is None:
            wanted += [(each, target.module) for each in _passed_on(source)]
        if target.module not in modules:  # what importing a module does counts with any part of it
            modules.add(target.module)
            nodes = [*nodes, *source.effects]
        for node in nodes:
            meaning, used = _read(source, node)
            found.add(meaning)
            wanted += [(each, target.module) for each in used]
    return found


def _nodes(source: Source, symbol: str | None) -> list[ast.stmt] | None:
    if symbol is None:
        return _statements(source)
    return [source.definitions[symbol]] if symbol in source.definitions else None


def _passed_on(source: Source) -> list[Target]:
    """What a module imports for others to find in it: a method that shares the round of another."""
    statement = source.definitions.get("__all__")
    names = ast.literal_eval(statement.value) if isinstance(statement, ast.Assign) else []
    found = (source.imports.get(name) for name in names)
    return [target for target in found if target and target.is_first_party]


def _used(source: Source, name: str) -> list[Target]:
    return [target for _, target in source.names(source.definitions[name])]


_READ: dict[int, tuple[ast.stmt, str, tuple[Target, ...]]] = {}


def _read(source: Source, node: ast.stmt) -> tuple[str, tuple[Target, ...]]:
    """Digest of a statement's meaning, and what it uses of the package; kept with the statement."""
    if id(node) not in _READ:
        used = {target for _, target in source.names(node) if target.is_first_party}
        meaning = digest(_meaning(node, source, bound(node)))
        _READ[id(node)] = (node, meaning, tuple(sorted(used, key=str)))
    _, meaning, used = _READ[id(node)]
    return meaning, used


def _meaning(node: object, source: Source, local: frozenset[str]) -> str:
    """A syntax tree as text.

    `ast.dump` and `ast.unparse` would do, but both changed between Python versions (empty lists,
    quotes in f-strings), and every change would rerun every training.
    """
    if isinstance(node, ast.AST):
        target = source.target(node, local)
        if target is not None:
            return f"Name({_called(target)})"
        fields = ((name, _meaning(value, source, local)) for name, value in ast.iter_fields(node))
        kept = [f"{name}={text}" for name, text in fields if text not in _NOTHING]
        return f"{type(node).__name__}({','.join(kept)})"
    if isinstance(node, list):
        items = (_meaning(item, source, local) for item in node if not _is_inert(item))
        return f"[{','.join(items)}]"
    return ascii(node)


def _called(target: Target) -> str:
    """First-party code by its own name, wherever it stands; other packages by the whole name."""
    if target.is_first_party:
        return target.symbol or target.module.rpartition(".")[2]
    return f"{target.module}.{target.symbol}" if target.symbol else target.module


def _is_inert(statement: object) -> bool:
    """Whether a statement does nothing: text, an ellipsis body, `pass`, an import."""
    bare = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return bare or isinstance(statement, ast.Pass | ast.Import | ast.ImportFrom)
