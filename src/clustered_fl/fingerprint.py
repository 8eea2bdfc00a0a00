"""What code means, as a short string: it changes when results may change, and only then.

Snakemake cannot see which modules a shell command imports, and a commit id or a file's time changes
with every comment. A rule therefore carries `params: code=fingerprint("clustered_fl.methods.cfl")`:
comments, docstrings and formatting do not reach the syntax tree and rerun nothing, while a change
of logic in the module or in anything first-party that it imports reruns exactly its dependants.

Not seen: imports by a name that is computed at run time, files that code reads (a rule names those
as input), and other packages (requirements.txt pins them). A package's `__init__.py` counts for all
modules of the package, because importing one of them runs it, so an `__init__.py` that imports its
modules makes all of them one.
"""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from clustered_fl.errors import InputError
from clustered_fl.files import digest

PACKAGE = "clustered_fl"
SOURCE = Path(__file__).parents[1]

# What a field without content looks like; Python versions differ in which of them they have.
_NOTHING = {"None", "[]"}


def fingerprint(*modules: str, source: Path = SOURCE) -> str:
    """Digest of the meaning of `modules` and of everything first-party that they import.

    Nothing is imported, so it takes milliseconds and needs none of the modules' dependencies.
    Imports inside functions and under `if TYPE_CHECKING` count like those at the top. The result
    does not depend on the Python version that computes it (3.11 to 3.13).

    Args:
        modules: dotted names, for example "clustered_fl.engine.local"; order is irrelevant.
        source: the folder that holds the package.

    Returns:
        16 hex digits.

    Raises:
        InputError: if a module, or one that it imports from the package, does not exist.
    """
    meanings: dict[str, str] = {}
    waiting = [(module, "a fingerprint") for module in modules]
    while waiting:
        module, wanted_by = waiting.pop()
        if module in meanings:
            continue
        path = _path(module, wanted_by, source)
        meanings[module], imports = _read(path.read_text(encoding="utf-8"), path)
        parent = module.rpartition(".")[0]
        package = module if path.name == "__init__.py" else parent
        found = {name for each in imports for name in _targets(each, package, source)}
        waiting += [(name, module) for name in found | {parent} if name]
    return digest(meanings)


def imported_by(text: str, source: Path = SOURCE) -> list[str]:
    """First-party modules that a piece of code imports, sorted: what a notebook depends on."""
    _, imports = _read(text, Path("text"))
    return sorted({name for each in imports for name in _targets(each, PACKAGE, source)})


def _path(module: str, wanted_by: str, source: Path) -> Path:
    path = _file(module, source) if _is_first_party(module) else None
    if path is None:
        raise InputError(
            f"{wanted_by} names the module {module}, which does not exist; "
            f"allowed are the modules under {source / PACKAGE}"
        )
    return path


def _file(module: str, source: Path) -> Path | None:
    stem = source.joinpath(*module.split("."))
    return next(filter(Path.is_file, (stem / "__init__.py", stem.with_suffix(".py"))), None)


def _is_first_party(module: str) -> bool:
    return module == PACKAGE or module.startswith(f"{PACKAGE}.")


@cache
def _read(text: str, path: Path) -> tuple[str, tuple[ast.Import | ast.ImportFrom, ...]]:
    """The digest of a source text's meaning, and the import statements anywhere in it.

    Cached by content, because a Snakefile asks for many fingerprints that share modules.
    """
    tree = ast.parse(text, filename=str(path))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    return digest(_meaning(tree)), tuple(imports)


def _targets(statement: ast.Import | ast.ImportFrom, package: str, source: Path) -> Iterator[str]:
    """First-party modules that an import statement in `package` loads."""
    if isinstance(statement, ast.Import):
        yield from (alias.name for alias in statement.names if _is_first_party(alias.name))
        return
    base = _base(statement, package)
    if not _is_first_party(base):
        return
    yield base
    # `from package import name` loads a module only if there is one called so.
    names = (f"{base}.{alias.name}" for alias in statement.names)
    yield from (name for name in names if _file(name, source))


def _base(statement: ast.ImportFrom, package: str) -> str:
    if not statement.level:
        return statement.module or ""
    parents = package.split(".")[: len(package.split(".")) - statement.level + 1]
    return ".".join([*parents, *filter(None, [statement.module])])


def _meaning(node: object) -> str:
    """A syntax tree as text.

    `ast.dump` and `ast.unparse` would do, but both changed between Python versions (empty lists,
    quotes in f-strings), and every change would rerun every training.
    """
    if isinstance(node, ast.AST):
        fields = ((name, _meaning(value)) for name, value in ast.iter_fields(node))
        kept = [f"{name}={text}" for name, text in fields if text not in _NOTHING]
        return f"{type(node).__name__}({','.join(kept)})"
    if isinstance(node, list):
        return f"[{','.join(_meaning(item) for item in node if not _is_inert(item))}]"
    return ascii(node)


def _is_inert(statement: object) -> bool:
    """Whether a statement does nothing: a docstring, a bare string, an ellipsis body, `pass`."""
    bare = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return bare or isinstance(statement, ast.Pass)
