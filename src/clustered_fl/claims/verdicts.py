"""From claims and records to verdicts.

CONFIRMED: true of the mean over seeds and of at least 80 % of the seeds. REFUTED: false of both.
INCONCLUSIVE: anything else, or a number that could not be measured. NOT RUN: a run that the claim
needs was not computed at this scale. REDUCED: it is about the size of numbers, and this scale
changes settings of the runs or groupings that it is measured on. DEMO ONLY: measured on stand-in
data, which decides nothing.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import import_module

import numpy as np
import pandas as pd

from clustered_fl.claims import bounds
from clustered_fl.claims.binding import Bound, bind, function_of
from clustered_fl.claims.bounds import Measured
from clustered_fl.claims.evidence import Evidence, labels
from clustered_fl.errors import InputError
from clustered_fl.ledger.resolution import resolved_groupings, resolved_runs
from clustered_fl.ledger.schema import Claim, Scale
from clustered_fl.ledger.written import Ledger
from clustered_fl.options import call

COLUMNS = (
    *("claim", "paper", "artefact", "kind", "statement", "published", "measured", "holds_if"),
    *("seeds", "scale", "source", "verdict", "note"),
)
VERDICTS = ("CONFIRMED", "REFUTED", "INCONCLUSIVE", "NOT RUN", "REDUCED", "DEMO ONLY")
AGREEMENT = 0.8
Families = dict[str, list[str]]
"""Entry of the ledger -> runs or groupings at a scale, several where it has a sweep."""


def judge(holds_if: dict[str, str], measured: list[Measured]) -> str:
    """CONFIRMED, REFUTED or INCONCLUSIVE for the numbers of all seeds."""
    mean = mean_of(measured)
    if any(np.isnan(value) for value in mean.values()):
        return "INCONCLUSIVE"
    agree = np.mean([bounds.holds(holds_if, one) for one in measured])
    if bounds.holds(holds_if, mean):
        return "CONFIRMED" if agree >= AGREEMENT else "INCONCLUSIVE"
    return "REFUTED" if 1 - agree >= AGREEMENT else "INCONCLUSIVE"


def mean_of(measured: list[Measured]) -> Measured:
    """Mean over seeds of every number."""
    return {name: sum(one[name] for one in measured) / len(measured) for name in measured[0]}


def text_of(measured: list[Measured]) -> str:
    """Means, with the range over seeds where there are several: "gap 0.12 (0.10 to 0.15)"."""
    parts = []
    for name, mean in mean_of(measured).items():
        values = [one[name] for one in measured]
        spread = f" ({min(values):.3g} to {max(values):.3g})" if len(set(values)) > 1 else ""
        parts.append(f"{name} {mean:.3g}{spread}")
    return "; ".join(parts)


def evaluate(ledger: Ledger, records: pd.DataFrame, scale: Scale, source: str) -> pd.DataFrame:
    """Verdicts on all claims of one paper, one row per claim.

    Args:
        records: index of every run, grouping and study that was computed.
        source: of the data.
    Raises: InputError if a claim names no measure that there is, or cannot be measured.
    """
    known = Evidence(records, labels(ledger), ledger.cells)
    runs = resolved_runs(ledger, scale)
    families = {name: [n for n, r in runs.items() if r["family"] == name] for name in ledger.runs}
    families |= {name: [name] for name in resolved_groupings(ledger, scale)}
    rows = []
    for name, claim in ledger.claims.items():
        try:
            row = _row(claim, ledger, known, families, scale, source)
        except InputError as error:
            raise InputError(f"claim {name}: {error}") from error
        rows.append({"claim": name} | row)
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _row(
    claim: Claim, ledger: Ledger, known: Evidence, families: Families, scale: Scale, source: str
) -> dict[str, object]:
    function = measure_of(claim)
    bound = bind(claim.measure, function, ledger)
    measured = [
        call(function, f"measure {bound.function}", bound.arguments, evidence=one)
        for one in _by_seed(bound, known, families)
    ]
    withheld = _withheld(ledger, claim, bound, scale, source) if measured else "NOT RUN"
    return {
        "paper": ledger.paper,
        "artefact": claim.artefact,
        "kind": claim.kind,
        "statement": claim.statement,
        "published": claim.published or _published(bound, known),
        "measured": text_of(measured) if measured else "",
        "holds_if": bounds.text(claim.holds_if),
        "seeds": len(measured),
        "scale": scale,
        "source": source if bound.measured else "none",
        "verdict": withheld or judge(claim.holds_if, measured),
        "note": claim.note,
    }


def measure_of(claim: Claim) -> Callable[..., Measured]:
    """The function that measures a claim; InputError if there is none of that name."""
    module, function = function_of(claim.measure)
    try:
        return getattr(import_module(f"clustered_fl.claims.{module}"), function)
    except (ImportError, AttributeError) as error:
        raise InputError(f"there is no measure {claim.measure['name']!r}") from error


def _published(bound: Bound, known: Evidence) -> str:
    """The first published numbers of what is measured, from its table."""
    found = [(known.label(name), known.label(name).published) for name in bound.measured]
    parts = [f"{label.row} {next(iter(numbers.values())):g}" for label, numbers in found if numbers]
    return ", ".join(dict.fromkeys(parts)) or "not stated"


def _withheld(ledger: Ledger, claim: Claim, bound: Bound, scale: Scale, source: str) -> str:
    """The word that stands for a verdict where these data or this scale allow none, else ""."""
    if bound.measured and source == "builtin":
        return "DEMO ONLY"
    measured = [(ledger.runs | ledger.groupings)[name] for name in bound.measured]
    smaller = claim.full_size and any(entry.scales.get(scale) for entry in measured)
    return "REDUCED" if smaller else ""


def _by_seed(bound: Bound, known: Evidence, families: Families) -> Iterator[Evidence]:
    """One piece of evidence per seed that all runs and groupings of the claim have."""
    if not bound.measured:
        yield known
        return
    records = known.records
    own = records["entry"].isin(bound.measured) & records["kind"].isin(["run", "grouping"])
    seeds = records[own].groupby("name")["seed"].agg(set)
    # An entry without members at this scale has no seeds either: the claim is then not run.
    members = [families[entry] for entry in bound.measured]
    if all(members) and {name for own in members for name in own} <= set(seeds.index):
        for seed in sorted(set.intersection(*seeds)):
            seen = (records["kind"] == "study") | (own & (records["seed"] == seed))
            yield replace(known, records=records[seen])
