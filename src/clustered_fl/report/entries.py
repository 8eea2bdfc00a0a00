"""What a report shows of each thing that the ledgers name: the ledger's words and what was found.

Paths are relative to the folder of results and the same in a report, which copies them.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from clustered_fl.report.verdicts import Verdict
from clustered_fl.schema import Artefact, Claim, Encoder, Grouping, Ledger, Run, Scale, Study


@dataclass(frozen=True)
class Publication:
    """What was published earlier and is shown again, without the results that it was made from.

    Attributes:
        folder: that was published, which has the same paths as a folder of results.
        papers: which of its papers are shown again.
        provenance: what it says of every run.
    """

    folder: Path
    papers: tuple[str, ...]
    provenance: dict[str, Any]

    def score(self, run: str, seed: int) -> float | None:
        """What was published as the score of a run's seed; its rounds are not published."""
        return self.provenance["runs"][run][str(seed)]["score"]


@dataclass(frozen=True)
class Scope:
    """What a report is about.

    Attributes:
        ledgers: one per paper.
        results: folder with verdicts.csv, artefacts/, runs/ and studies/ of one scale.
        scale: of these results.
        source: where their data come from: builtin, mirror or download.
        seeds: at most so many of the ledger's seeds were asked for in `results`; None: all.
        guide: Markdown that says how to add a method; shown where there are grounds to add it to.
        earlier: where papers come from whose results are not in `results`.
    """

    ledgers: tuple[Ledger, ...]
    results: Path
    scale: Scale
    source: str
    seeds: int | None = None
    guide: Path | None = None
    earlier: Publication | None = None

    def earlier_of(self, paper: str) -> Publication | None:
        """The publication that a paper is taken from; None if it is in `results`."""
        return self.earlier if self.earlier and paper in self.earlier.papers else None

    def limit(self, paper: str) -> int | None:
        """At most so many seeds are shown; what was published earlier stays whole."""
        return None if self.earlier_of(paper) else self.seeds

    def folder(self, paper: str) -> Path:
        """Where verdicts, artefacts and records of a paper lie."""
        earlier = self.earlier_of(paper)
        return earlier.folder if earlier else self.results


@dataclass(frozen=True)
class SeedEntry:
    """One seed of one run; `record` is None where it was not computed.

    Attributes:
        score: mean test score over the clients at the last evaluation.
    """

    run: str
    seed: int
    folder: str
    record: dict[str, Any] | None
    score: float | None


@dataclass(frozen=True)
class RunEntry:
    """One run of the ledger, itself or all members of its sweep; or one grouping or encoder."""

    name: str
    about: Run | Grouping | Encoder
    configuration: dict[str, Any]
    seeds: list[SeedEntry]

    @property
    def done(self) -> list[SeedEntry]:
        """The seeds that left a record."""
        return [seed for seed in self.seeds if seed.record is not None]

    @property
    def minutes(self) -> float:
        """Mean over the seeds that left a record."""
        return fmean(seed.record["cost"]["seconds"] for seed in self.seeds if seed.record) / 60

    @property
    def data(self) -> list[dict[str, Any]]:
        """Every dataset that its records name."""
        return datasets(self.seeds)


@dataclass(frozen=True)
class StudyEntry:
    """One study of the ledger; `record` is None where it was not computed."""

    name: str
    about: Study
    folder: str
    record: dict[str, Any] | None


@dataclass(frozen=True)
class ClaimEntry:
    """A claim with its verdict."""

    about: Claim
    verdict: Verdict


@dataclass(frozen=True)
class ArtefactEntry:
    """A table or figure.

    Attributes:
        files: suffix -> path of the files that exist.
        size: of the picture, in pixels; None if there is none.
        rows: of the table, heading first; empty for a figure.
        data: every dataset that went into it, as its records describe it.
        stand_ins: whether built-in data went into it.
    """

    name: str
    about: Artefact
    files: dict[str, str]
    size: tuple[int, int] | None
    rows: list[list[str]]
    claims: list[ClaimEntry]
    data: list[dict[str, Any]]
    stand_ins: bool


@dataclass(frozen=True)
class PaperEntry:
    """A paper; `claims` is None where no verdicts were computed."""

    ledger: Ledger
    encoders: dict[str, RunEntry]
    groupings: dict[str, RunEntry]
    runs: dict[str, RunEntry]
    studies: dict[str, StudyEntry]
    artefacts: list[ArtefactEntry]
    claims: list[ClaimEntry] | None

    @property
    def seeds(self) -> list[SeedEntry]:
        """All seeds of everything that leaves records of data."""
        return [seed for entry in self.computed.values() for seed in entry.seeds]

    @property
    def computed(self) -> dict[str, RunEntry]:
        """Encoders, groupings and runs, by name."""
        return self.encoders | self.groupings | self.runs

    @property
    def verdicts(self) -> list[Verdict]:
        """Of all claims, in the order of verdicts.csv."""
        return [claim.verdict for claim in self.claims or []]


def datasets(seeds: Iterable[SeedEntry], *, digests: bool = True) -> list[dict[str, Any]]:
    """Every dataset that the records name, once, by name.

    Args:
        seeds: whose records.
        digests: without them, transformed images that differ by their seed only are one dataset.
    """
    named = [seed.record["data"] for seed in seeds if seed.record]
    if not digests:
        named = [{key: data[key] for key in data if key != "digest"} for data in named]
    found = {json.dumps(data, sort_keys=True) for data in named}
    return sorted(map(json.loads, sorted(found)), key=lambda data: (data["name"], data["source"]))
