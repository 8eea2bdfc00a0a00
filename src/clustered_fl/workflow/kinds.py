"""One kind of thing that is computed: where its records lie, what they hold, what decides them.

Every method that takes `wildcards` is an input or parameter function of a rule. Parameters that
change rerun exactly the jobs that use them: a job's parameters are its resolved configuration and
the fingerprint of the code that computes it.
"""

import json
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from clustered_fl.errors import InputError
from clustered_fl.files import digest
from clustered_fl.records import index
from clustered_fl.workflow.fingerprint import of_code

FILES = {
    "run": ("record.json", "cost.json", "rounds.parquet"),
    "grouping": ("record.json", "cost.json", "relatedness.safetensors", "comparisons.parquet"),
    "encoder": ("record.json", "cost.json", "pictures.safetensors", "encoder.safetensors"),
    "study": ("record.json", "cost.json"),
}
"""What a record holds for figures and claims; a study besides these its tables."""
MARGIN, START, UNKNOWN = 3, 5, 480
"""A job may take three times the expected minutes, and five more to start: of 745 records of scale
desktop, made on a busy machine, none needed more. Where nothing is expected it has a day."""
SHORT = 5
"""Expected minutes up to which computations share one job of a cluster. When one of them fails the
cluster's job is made again, with all of them."""


@dataclass(frozen=True)
class Entry:
    """One thing to compute, for some seeds.

    Attributes:
        config: resolved, without the seed.
        seeds: to compute.
        code: modules whose meaning decides the result, as `fingerprint` takes them.
        family: name in the ledger, which a sweep turns into several entries.
        rests_on: kind and name of what is computed before, and used.
        partition: fingerprint of the code that makes its federation, "" without one.
        memory_mb: to reserve.
        minutes: expected on one core.
        tables: that a study leaves.
    """

    config: dict[str, Any]
    seeds: tuple[int, ...]
    code: tuple[str, ...]
    family: str
    rests_on: tuple[tuple[str, str], ...] = ()
    partition: str = ""
    memory_mb: int = 0
    minutes: float = UNKNOWN
    tables: tuple[str, ...] = ()

    @cached_property
    def fingerprint(self) -> str:
        """Of the code that computes it."""
        return of_code(*self.code)


@dataclass(frozen=True)
class Kind:
    """All runs, groupings, encoders or studies of a plan.

    Attributes:
        name: "run", "grouping", "encoder" or "study".
        place: pattern of the folder of one record, with {name} and {seed}.
        entries: by name.
        seeded: whether the configuration says the seed.
        stand_ins: whether the data are built in.
    """

    name: index.Kind
    place: str
    entries: dict[str, Entry] = field(default_factory=dict)
    seeded: bool = True
    stand_ins: bool = False

    def __getitem__(self, name: str) -> Entry:
        """The entry of a name; InputError if there is none."""
        if name not in self.entries:
            known = ", ".join(self.entries)
            raise InputError(f"unknown {self.name} {name!r}; the ledgers have {known or 'none'}")
        return self.entries[name]

    def folder(self, name: str, seed: int | str) -> str:
        """Where a record lies."""
        return self.place.format(name=name, seed=seed)

    def members(self, families: Iterable[str]) -> list[str]:
        """Names that entries of the ledger stand for, in their order."""
        known: dict[str, list[str]] = {}
        for name, entry in self.entries.items():
            known.setdefault(entry.family, []).append(name)
        return [name for family in families for name in known.get(family, [])]

    def records(self, families: Iterable[str]) -> Iterator[tuple[index.Kind, str, str, int, str]]:
        """Rows of the index of records: all seeds of these entries of the ledger."""
        for name in self.members(families):
            entry = self.entries[name]
            for seed in entry.seeds:
                yield self.name, entry.family, name, seed, self.folder(name, seed)

    def files_of(self, families: Iterable[str]) -> list[str]:
        """Files that must exist before these entries can be read."""
        return [
            f"{folder}/{file}"
            for *_, name, _, folder in self.records(families)
            for file in self.files(name)
        ]

    def files(self, name: str) -> list[str]:
        """What a record holds for figures and claims, record.json first."""
        return [*FILES[self.name], *(f"{table}.parquet" for table in self[name].tables)]

    def config(self, wildcards: Any) -> str:
        """The resolved configuration with its seed, as JSON."""
        seed = int(getattr(wildcards, "seed", 0))
        return json.dumps(self.configured(wildcards.name, seed), sort_keys=True)

    def configured(self, name: str, seed: int) -> dict[str, Any]:
        """The resolved configuration of one record."""
        config = self[name].config
        return config | {"seed": seed} if self.seeded else config

    def code(self, wildcards: Any) -> str:
        """Fingerprint of what computes it."""
        return self[wildcards.name].fingerprint

    def memory(self, wildcards: Any) -> int:
        """Megabytes to reserve."""
        return self[wildcards.name].memory_mb

    def runtime(self, wildcards: Any, attempt: int) -> int:
        """Minutes to reserve: more for a second attempt, which may have met the limit."""
        return math.ceil((START + MARGIN * self[wildcards.name].minutes) * attempt)

    def identity(self, name: str, seed: int, of: Callable[[str, str, int], str]) -> str:
        """What makes two records the same result: configuration, code, and what it rests on.

        Of the data it knows only whether they are real; their digest is compared where they are at
        hand.

        Args:
            of: identity of another record: kind, name, seed.
        """
        entry = self[name]
        below = [of(kind, each, seed) for kind, each in entry.rests_on]
        data = "stand-ins" if self.stand_ins and "dataset" in entry.config else ""
        content = [self.configured(name, seed), entry.fingerprint, entry.partition, below, data]
        return digest(content)
