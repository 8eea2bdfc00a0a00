"""What clients sent is published of the groupings of which something shows it, and of no other."""

import ast
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent
from types import FunctionType, ModuleType

import numpy as np
import pytest
import tiny_groupings as tiny
from playing import NOTEBOOKS, code_cells

from clustered_fl.claims.binding import bind, variants
from clustered_fl.claims.evidence import GroupingEvidence
from clustered_fl.claims.verdicts import measure_of
from clustered_fl.errors import InputError
from clustered_fl.ledger.reading import load_ledger
from clustered_fl.ledger.written import Ledger
from clustered_fl.records import relatedness
from clustered_fl.records.relatedness import SENT, SIGNATURES

ROOT = Path(__file__).parents[2]
LEDGERS = [load_ledger(path) for path in sorted((ROOT / "config" / "papers").glob("*.yaml"))]


def attributes(tree: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Every attribute that is asked for, and of what."""
    yield from ((n.attr, n.value) for n in ast.walk(tree) if isinstance(n, ast.Attribute))


def loads_signatures(code: str) -> bool:
    """Whether a notebook's code loads relatedness with signatures, or asks for them."""
    tree = ast.parse(code)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    whole = [
        call
        for call in calls
        if ast.unparse(call.func) == "relatedness.load"
        and [each.arg for each in call.keywords] != ["signatures"]
    ]
    return bool(whole) or any(name in SENT for name, _ in attributes(tree))


def closure(function: Callable) -> Iterator[FunctionType]:
    """A measure and the functions of claims that it calls, directly or not."""
    found, waiting = set(), [function]
    while waiting:
        current = waiting.pop()
        if current not in found:
            found.add(current)
            yield current
            named = (current.__globals__.get(name) for name in current.__code__.co_names)
            calls = (each for each in named if isinstance(each, FunctionType))
            own = (current.__module__, "clustered_fl.claims")
            waiting += [each for each in calls if each.__module__.startswith(own)]


def reads_signatures(function: Callable) -> bool:
    """Whether a measure reads more of a grouping than which clients are related."""
    for part in closure(function):
        for name, of in attributes(ast.parse(dedent(inspect.getsource(part)))):
            known = part.__globals__.get(of.id) if isinstance(of, ast.Name) else None
            if name in (*SENT, "sent") and not isinstance(known, ModuleType):
                return True
    return False


def needed(ledger: Ledger) -> set[str]:
    """Groupings of which a notebook or a claim reads what clients sent."""
    found: set[str] = set()
    for artefact in ledger.artefacts.values():
        cells = code_cells(NOTEBOOKS / artefact.notebook)
        if any(loads_signatures(cell["source"]) for cell in cells):
            found |= set(artefact.groupings)
    for claim in ledger.claims.values():
        function = measure_of(claim)
        if reads_signatures(function):
            for each in variants(claim).values():
                found |= set(bind(each.measure, function, ledger).needs["groupings"])
    return found


@pytest.mark.parametrize("ledger", LEDGERS, ids=lambda ledger: ledger.paper)
def test_marked_are_the_groupings_that_are_read(ledger):
    marked = {name for name, each in ledger.groupings.items() if each.signatures}
    assert marked == needed(ledger)


def test_something_is_read_and_marked():
    assert any(needed(ledger) for ledger in LEDGERS)


def test_only_the_evidence_of_claims_and_notebooks_load_relatedness():
    """What figures and metrics draw or measure, they are given."""
    package = ROOT / "src" / "clustered_fl"
    paths = [
        path
        for part in ("claims", "figures", "metrics")
        for path in package.glob(f"{part}/**/*.py")
    ]
    loading = [path.name for path in paths if "relatedness.load" in path.read_text()]
    assert loading == ["evidence.py"]


@pytest.mark.parametrize(
    ("code", "whole"),
    [
        ("relatedness.load(folder, signatures=False).related", False),
        ("relatedness.load(folder).related", True),
        ("relatedness.load(folder, signatures=False).points", True),
        ("[relatedness.load(path) for path in folders]", True),
        ("figures.save(figure)", False),
    ],
)
def test_a_notebook_that_reads_them_is_found(code, whole):
    assert loads_signatures(code) is whole


def of_helper(evidence):
    return evidence.grouping("g").sent


def by_helper(evidence):
    return of_helper(evidence).related


def named_first(evidence):
    grouping = evidence.grouping("g")
    return grouping.sent.related


def from_found(evidence):
    return evidence.grouping("g").found.distances


def of_a_module(evidence):
    return relatedness.sent, evidence.grouping("g").found.groups


@pytest.mark.parametrize(
    ("measure", "whole"),
    [(by_helper, True), (named_first, True), (from_found, True), (of_a_module, False)],
)
def test_a_measure_that_reads_them_is_found(measure, whole):
    assert reads_signatures(measure) is whole


def test_related_clients_are_read_without_what_they_sent(tmp_path):
    folder = tiny.write(tmp_path / "g", [0, 0, 1], signatures=np.ones((3, 2, 4), np.float32))
    grouping = GroupingEvidence(folder)
    assert grouping.sent.signatures.shape == (3, 2, 4)
    np.testing.assert_array_equal(grouping.found.related, grouping.sent.related)
    (folder / SIGNATURES).unlink()
    assert GroupingEvidence(folder).found.signatures.size == 0
    with pytest.raises(InputError, match=SIGNATURES):
        _ = GroupingEvidence(folder).sent
