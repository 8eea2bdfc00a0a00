"""The verdicts on the claims: `verdicts.csv`, its counts, and the scorecard as Markdown."""

import csv
from collections import Counter, namedtuple
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from clustered_fl.claims.judging import AGREEMENT
from clustered_fl.claims.verdicts import COLUMNS, VERDICTS
from clustered_fl.errors import InputError
from clustered_fl.figures import SOURCES
from clustered_fl.figures.tables import markdown
from clustered_fl.files import require_sum

_PERCENT = f"{100 * AGREEMENT:.0f} %"

# Word -> what it says, in the order in which the report lists them.
MEANING = dict(
    zip(
        VERDICTS,
        (
            f"True of the mean over seeds and of {_PERCENT} of them, by two standard errors, with "
            "every value tried of the settings that the paper does not state.",
            f"False of the mean over seeds and of {_PERCENT} of them, by two standard errors, with "
            "every value tried of these settings.",
            "True with one value of a setting that the paper does not state, false with another.",
            "None of these, or a number that it needs could not be measured.",
            "True, and it could not have been false: shown and not counted.",
            "This scale changes a setting of what it is measured on.",
            "A run, grouping or study that would decide it was not computed at this scale.",
            "It needs real data and was computed on stand-in data, which decide nothing.",
        ),
        strict=True,
    )
)


Verdict = namedtuple("Verdict", COLUMNS)
"""One row of `verdicts.csv`; every value is text as it stands there."""


def read_verdicts(path: Path, scale: str) -> list[Verdict]:
    """All verdicts in the order of `verdicts.csv`, which must be of `scale`.

    Raises:
        InputError: if it cannot be read, lacks a column, or has another scale or an unknown word.
    """
    require_sum(path)
    try:
        rows = list(csv.DictReader(path.read_text().splitlines(keepends=True)))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    if missing := [name for name in COLUMNS if rows and name not in rows[0]]:
        raise InputError(f"{path} has no column {missing[0]!r}; needed are {', '.join(COLUMNS)}")
    found = [Verdict(*(row[name] or "" for name in COLUMNS)) for row in rows]
    for each in found:
        if each.verdict not in MEANING:
            allowed = f"allowed are {', '.join(MEANING)}"
            raise InputError(f"{path}: {each.claim} has the verdict {each.verdict!r}; {allowed}")
        if each.scale != scale:
            raise InputError(f"{path}: {each.claim} is of scale {each.scale!r}, not {scale!r}")
    return found


def write_verdicts(path: Path, verdicts: list[Verdict]) -> None:
    """Write verdicts as they were read, a row each."""
    with path.open("w", newline="") as file:
        table = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        table.writeheader()
        table.writerows(each._asdict() for each in verdicts)


def counts(verdicts: list[Verdict]) -> dict[str, int]:
    """How often each word occurs, words that do not occur included."""
    seen = Counter(verdict.verdict for verdict in verdicts)
    return {word: seen[word] for word in MEANING}


def scorecard(verdicts: list[Verdict], scale: str, source: str) -> str:
    """Counts and claims as Markdown, for a README."""
    summary = ", ".join(f"{count} {word}" for word, count in counts(verdicts).items() if count)
    return f"Scorecard ({_about(scale, source)}): {summary or 'no claims'}.\n\n{claims(verdicts)}"


def claims(verdicts: Iterable[Verdict]) -> str:
    """Claims with their numbers and verdicts as a Markdown table."""
    columns = ("claim", "kind", "statement", "published", "ours", "holds if", "seeds", "verdict")
    lines = [_row(columns), "|---" * len(columns) + "|"]
    for each in verdicts:
        about = (each.claim, each.kind, each.statement, each.published, each.measured)
        bounds = each.holds_if.replace(">=", "≥").replace("<=", "≤")
        lines.append(_row((*about, bounds, each.seeds, f"**{each.verdict}**")))
    return "\n".join(lines) + "\n"


def summary_table(
    papers: list[dict[str, Any]], scale: str, source: str, link: str = "{}/scorecard.md"
) -> str:
    """How often each verdict was given on the claims of each paper, as Markdown."""
    heads = [f"[{each['short']}]({link.format(each['paper'])})" for each in papers]
    lines = [f"Verdicts ({_about(scale, source)}).", "", _row(("verdict", *heads))]
    lines.append("|---" * (len(heads) + 1) + "|")
    found = [counts(each["verdicts"]) for each in papers]
    given = [word for word in MEANING if any(each[word] for each in found)]
    lines += [_row((word, *(str(each[word]) for each in found))) for word in given]
    lines.append(_row(("all claims", *(str(len(each["verdicts"])) for each in papers))))
    return "\n".join(lines) + "\n"


def _about(scale: str, source: str) -> str:
    return f"scale {scale}, {SOURCES[source]}"


def _row(values: tuple[str, ...]) -> str:
    """A row of a Markdown table."""
    return f"| {' | '.join(map(markdown, values))} |"
