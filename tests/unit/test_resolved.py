"""The ledgers compute what they did before runs became tables: guards that conversion.

`resolved.json` holds a digest of every run, grouping and encoder of the ledgers as they were
before: configurations, seeds and minutes at all three scales. Entries that are newer are not in
it. One that is changed on purpose is removed from it.
"""

import json
from pathlib import Path

import pytest

from clustered_fl.files import digest
from clustered_fl.ledger.reading import load_ledger
from clustered_fl.ledger.resolution import resolved_encoders, resolved_groupings, resolved_runs
from clustered_fl.ledger.schema import SCALES
from clustered_fl.ledger.written import Ledger

PAPERS = Path(__file__).parents[2] / "config" / "papers"
BEFORE = json.loads(Path(__file__).with_name("resolved.json").read_text())


def digests(resolved: dict[str, dict], minutes: dict[str, dict]) -> dict[str, str]:
    """Name in the ledger -> digest of its entries at all scales, with their minutes.

    Args:
        resolved: scale -> name -> resolved entry.
        minutes: name in the ledger -> scale -> minutes.
    """
    parts: dict[str, list] = {name: [] for name in minutes}
    for scale, entries in resolved.items():
        for name, entry in sorted(entries.items()):
            family = entry.get("family", name)
            counted = minutes[family].get(scale) if entry.get("seeds", [0]) else None
            parts[family].append([scale, name, entry, counted])
    return {name: digest(part) for name, part in parts.items()}


def of_ledger(ledger: Ledger, kind: str) -> dict[str, str]:
    resolve = {
        "runs": resolved_runs,
        "groupings": resolved_groupings,
        "encoders": resolved_encoders,
    }
    minutes = {name: dict(entry.minutes) for name, entry in getattr(ledger, kind).items()}
    return digests({scale: resolve[kind](ledger, scale) for scale in SCALES}, minutes)


@pytest.mark.parametrize("paper", BEFORE)
def test_every_entry_resolves_to_what_it_was_before_there_were_tables(paper):
    ledger = load_ledger(PAPERS / f"{paper}.yaml")
    for kind, before in BEFORE[paper].items():
        now = of_ledger(ledger, kind)
        assert {name for name in before if now.get(name) != before[name]} == set(), kind
