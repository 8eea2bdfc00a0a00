"""Claims of a ledger measured on records that a test has made."""

from pathlib import Path

from clustered_fl.claims import bounds
from clustered_fl.claims.binding import bind, variants
from clustered_fl.claims.evidence import Evidence, labels
from clustered_fl.claims.verdicts import measure_of
from clustered_fl.ledger.written import Ledger
from clustered_fl.options import call
from clustered_fl.records import index

Folders = dict[str, Path | str]


def evidence(
    ledger: Ledger,
    runs: dict[str, Folders] | None = None,
    groupings: Folders | None = None,
    studies: Folders | None = None,
) -> Evidence:
    """Evidence of one seed: runs by entry of the ledger and name, groupings and studies by name."""
    rows = [
        ("run", entry, name, 0, str(folder))
        for entry, members in (runs or {}).items()
        for name, folder in members.items()
    ]
    for kind, folders in (("grouping", groupings), ("study", studies)):
        rows += [(kind, name, name, 0, str(folder)) for name, folder in (folders or {}).items()]
    return Evidence(index.build(rows), labels(ledger), ledger.cells)


def result(
    ledger: Ledger, claim: str, known: Evidence, setting: str = ""
) -> tuple[dict[str, float], bool]:
    """What a claim measures and whether it holds; numbers are plain floats, ready for a table.

    Args:
        setting: "name = value" of a setting that the paper leaves open; "" for the ledger's own.
    """
    entry = variants(ledger.claims[claim])[setting]
    function = measure_of(entry)
    bound = bind(entry.measure, function, ledger)
    measured = call(function, f"measure {bound.function}", bound.arguments, evidence=known)
    assert all(isinstance(value, float) for value in measured.values())
    return measured, bounds.holds(entry.holds_if, measured)
