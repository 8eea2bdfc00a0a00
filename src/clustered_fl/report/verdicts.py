"""The verdicts on the claims: `verdicts.csv`, its counts, and the scorecard as Markdown."""

import csv
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

from clustered_fl.claims.verdicts import AGREEMENT, COLUMNS, VERDICTS
from clustered_fl.errors import InputError
from clustered_fl.figures import DEMO

_PERCENT = f"{100 * AGREEMENT:.0f} %"

# Word -> what it says, in the order in which the report lists them.
MEANING = dict(
    zip(
        VERDICTS,
        (
            f"It is true for the mean over the seeds and at least {_PERCENT} of them.",
            f"It is false for the mean over the seeds and at least {_PERCENT} of them.",
            "Neither of the two, or a number that it needs could not be measured.",
            "A run, grouping or study that would decide it was not computed at this scale.",
            "It is about the size of numbers, and this scale changes the settings behind them.",
            "It needs real data and was computed on stand-ins, which decide nothing.",
        ),
        strict=True,
    )
)


@dataclass(frozen=True)
class Verdict:
    """One row of `verdicts.csv`; every value is text as it stands there."""

    claim: str
    paper: str
    artefact: str
    statement: str
    published: str
    measured: str
    holds_if: str
    seeds: str
    scale: str
    source: str
    verdict: str
    note: str


def read_verdicts(path: Path, scale: str) -> list[Verdict]:
    """All verdicts in the order of the file.

    Args:
        path: `verdicts.csv`.
        scale: that the verdicts must be of.
    Raises:
        InputError: if it cannot be read, lacks a column, or has another scale or an unknown word.
    """
    try:
        rows = list(csv.DictReader(path.read_text().splitlines(keepends=True)))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    if missing := [name for name in COLUMNS if rows and name not in rows[0]]:
        raise InputError(f"{path} has no column {missing[0]!r}; needed are {', '.join(COLUMNS)}")
    found = [Verdict(**{name: row[name] or "" for name in COLUMNS}) for row in rows]
    for verdict in found:
        _check(path, verdict, scale)
    return found


def _check(path: Path, verdict: Verdict, scale: str) -> None:
    if verdict.verdict not in MEANING:
        raise InputError(
            f"{path}: {verdict.claim} has the verdict {verdict.verdict!r}; "
            f"allowed are {', '.join(MEANING)}"
        )
    if verdict.scale != scale:
        raise InputError(f"{path}: {verdict.claim} is of scale {verdict.scale!r}, not {scale!r}")


def write_verdicts(path: Path, verdicts: list[Verdict]) -> None:
    """Write verdicts as they were read, a row each."""
    with path.open("w", newline="") as file:
        table = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        table.writeheader()
        table.writerows(map(asdict, verdicts))


def counts(verdicts: list[Verdict]) -> dict[str, int]:
    """How often each word occurs, words that do not occur included."""
    seen = Counter(verdict.verdict for verdict in verdicts)
    return {word: seen[word] for word in MEANING}


def scorecard(verdicts: list[Verdict], scale: str, source: str) -> str:
    """Counts and claims as Markdown, for a README."""
    about = f"scale {scale}, {DEMO}" if source == "builtin" else f"scale {scale}, real data"
    summary = ", ".join(f"{count} {word}" for word, count in counts(verdicts).items() if count)
    columns = ("claim", "statement", "published", "ours", "holds if", "seeds", "verdict")
    lines = [f"Scorecard ({about}): {summary or 'no claims'}.", "", _row(columns)]
    lines.append("|---" * len(columns) + "|")
    for each in verdicts:
        values = (each.claim, each.statement, each.published, each.measured, each.holds_if)
        lines.append(_row((*values, each.seeds, f"**{each.verdict}**")))
    return "\n".join(lines) + "\n"


def _row(values: tuple[str, ...]) -> str:
    """A row of a Markdown table; a bar or a line break inside a value would end its cell."""
    cells = (" ".join(value.replace("|", "\\|").split()) for value in values)
    return f"| {' | '.join(cells)} |"
