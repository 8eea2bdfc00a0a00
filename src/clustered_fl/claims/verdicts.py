"""From claims and records to verdicts.

CONFIRMED: true of the mean over seeds and of at least 80 % of the seeds. REFUTED: false of both.
INCONCLUSIVE: anything else, or a number that could not be measured. NOT RUN: a run that the claim
needs was not computed at this scale. REDUCED: it is about the size of numbers, and this scale
changes settings of the runs or groupings that it is measured on. DEMO ONLY: measured on stand-in
data, which decides nothing.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from clustered_fl.claims.evidence import Evidence
from clustered_fl.claims.predicates import Measured, Predicate
from clustered_fl.errors import InputError
from clustered_fl.schema import Claim, Ledger

COLUMNS = (
    *("claim", "paper", "artefact", "statement", "published", "measured", "holds_if", "seeds"),
    *("scale", "source", "verdict", "note"),
)
VERDICTS = ("CONFIRMED", "REFUTED", "INCONCLUSIVE", "NOT RUN", "REDUCED", "DEMO ONLY")
AGREEMENT = 0.8

Folders = Mapping[str, Mapping[str, Mapping[int | str, str]]]
"""Family -> run -> seed -> folder; a grouping is a family of one."""


def check_complete(ledger: Ledger, predicates: Mapping[str, Predicate]) -> None:
    """Every claim has a predicate and every predicate a claim.

    Raises:
        InputError: naming the first that has not.
    """
    for claim in ledger.claims:
        if claim not in predicates:
            raise InputError(f"claim {claim} of the ledger {ledger.paper} has no predicate")
    for claim in predicates:
        if claim not in ledger.claims:
            raise InputError(f"predicate {claim} has no claim in the ledger {ledger.paper}")


def judge(predicate: Predicate, measured: list[Measured]) -> str:
    """CONFIRMED, REFUTED or INCONCLUSIVE for the numbers of all seeds."""
    mean = mean_of(measured)
    if any(np.isnan(value) for value in mean.values()):
        return "INCONCLUSIVE"
    agree = np.mean([predicate.holds(one) for one in measured])
    if predicate.holds(mean):
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


def titled(measured: Measured, ledger: Ledger) -> Measured:
    """The numbers with grounds and contenders called by their titles, as figures call them."""
    entries = [*ledger.grounds.items(), *ledger.contenders.items()]
    titles = {name: entry.title for name, entry in entries}
    return {
        ", ".join(titles.get(word, word) for word in label.split(", ")): value
        for label, value in measured.items()
    }


def evaluate(
    ledger: Ledger,
    predicates: Mapping[str, Predicate],
    folders: Folders,
    studies: Mapping[str, str],
    scale: str,
    source: str,
) -> pd.DataFrame:
    """Verdicts on all claims of one paper, one row per claim.

    Args:
        ledger, predicates: the claims and their tests.
        folders: records of every run and grouping, empty where it has no seed at this scale.
        studies: folder of every study.
        scale, source: shown beside every verdict.
    Raises:
        InputError: if a claim has no predicate or a predicate no claim.
    """
    check_complete(ledger, predicates)
    rows = [
        _row(ledger, name, predicates[name], folders, studies, scale, source)
        for name in ledger.claims
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _row(
    ledger: Ledger,
    name: str,
    predicate: Predicate,
    folders: Folders,
    studies: Mapping[str, str],
    scale: str,
    source: str,
) -> dict[str, object]:
    claim = ledger.claims[name]
    measured = [predicate.measure(one) for one in _evidence(claim, folders, studies)]
    withheld = _withheld(ledger, claim, scale, source) if measured else "NOT RUN"
    return {
        "claim": name,
        "paper": ledger.paper,
        "artefact": claim.artefact,
        "statement": claim.statement,
        "published": claim.published,
        "measured": text_of([titled(one, ledger) for one in measured]) if measured else "",
        "holds_if": predicate.text,
        "seeds": len(measured),
        "scale": scale,
        "source": source if wanted(claim) else "none",
        "verdict": withheld or judge(predicate, measured),
        "note": claim.note,
    }


def _withheld(ledger: Ledger, claim: Claim, scale: str, source: str) -> str:
    """The word that stands for a verdict where these data or this scale allow none, else ""."""
    if wanted(claim) and source == "builtin":
        return "DEMO ONLY"
    measured = [(ledger.runs | ledger.groupings)[name] for name in wanted(claim)]
    smaller = claim.full_size and any(entry.scales.get(scale) for entry in measured)
    return "REDUCED" if smaller else ""


def wanted(claim: Claim) -> list[str]:
    """Runs and groupings that a claim is measured on."""
    return [*claim.runs, *claim.groupings]


def _evidence(claim: Claim, folders: Folders, studies: Mapping[str, str]) -> list[Evidence]:
    """One piece of evidence per seed that all runs of the claim have."""
    places = {name: Path(studies[name]) for name in claim.studies}
    names = wanted(claim)
    if not names:
        return [Evidence({}, places)]
    # A family without runs at this scale has no seeds either: the claim is then not run.
    runs = [seeds for family in names for seeds in (folders[family] or {family: {}}).values()]
    common = set.intersection(*(set(map(int, seeds)) for seeds in runs))
    return [
        Evidence({family: _of_seed(folders[family], seed) for family in names}, places)
        for seed in sorted(common)
    ]


def _of_seed(runs: Mapping[str, Mapping[int | str, str]], seed: int) -> dict[str, Path]:
    return {
        run: Path({int(key): folder for key, folder in seeds.items()}[seed])
        for run, seeds in runs.items()
    }
