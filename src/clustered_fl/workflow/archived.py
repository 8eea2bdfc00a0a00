"""Which records of a plan are taken from the published archives, in place of being computed.

A record is taken if it was made with the settings and the code that the plan has now, and so was
everything that it rests on (`Kind.identity`), and if its data are those at hand, where any are. One
that was computed here stays. The models of runs are not in an archive: where a grouping must be
computed, the run that is its profiler is trained too.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from clustered_fl.records.archive import FILE, Key, Packed, read
from clustered_fl.workflow.kinds import FILES, Kind
from clustered_fl.workflow.present import Present

NAMED = 8
"""Records that are listed by name at the start of a run."""


class Archives:
    """The published records of some papers, and which of them a plan takes.

    Args:
        folders: of the papers that are published at this scale, such as `figures/desktop/cfl`.
    Attributes:
        taken: what is restored.
    """

    def __init__(self, kinds: Iterable[Kind], here: Present, folders: Iterable[Path]) -> None:
        self._kinds = {kind.name: kind for kind in kinds}
        self._here = here
        self._files = {folder: read(folder / FILE, files=False) for folder in folders}
        self._places = {key: folder / FILE for folder, own in self._files.items() for key in own}
        self.taken = {
            packed.key
            for own in self._files.values()
            for packed in own.values()
            if self._fits(packed) and not self._here.is_here(packed.key)
        }
        self.taken -= set(self._needed_to_compute())

    def _fits(self, packed: Packed) -> bool:
        kind = self._kinds[packed.kind]
        if packed.name not in kind.entries or packed.seed not in kind[packed.name].seeds:
            return False
        same = packed.identity == self._here.identity(*packed.key)
        return same and self._here.are_at_hand(packed.key, packed.data)

    def _needed_to_compute(self) -> Iterator[Key]:
        """Profilers of groupings that will be computed."""
        for name, entry in self._kinds["grouping"].entries.items():
            for seed in entry.seeds:
                key = Key("grouping", name, seed)
                if key not in self.taken and not self._here.is_here(key):
                    yield from (below for below in self._here.below(key) if below.kind == "run")

    def told(self) -> str:
        """What is taken and what is not, for the user; "" where nothing is published."""
        known = (packed for own in self._files.values() for packed in own.values())
        others = [packed for packed in known if not self._fits(packed)]
        if not self._places:
            return ""
        text = f"{len(self.taken)} published records are taken in place of being computed."
        if others:
            named = ", ".join(f"{each.name} (seed {each.seed})" for each in others[:NAMED])
            more = f" and {len(others) - NAMED} more" if len(others) > NAMED else ""
            text += f" Of other settings, code or data, and not taken: {named}{more}."
        return text

    def restored(self, kind: Kind) -> Iterator[tuple[str, str, list[str]]]:
        """What the rules of one kind restore: name of the rule, expression of records, their files.

        One rule for all, but one for each study, because they leave different tables.
        """
        if kind.name != "study":
            yield f"restore_{kind.name}", self.constraint(kind), list(FILES[kind.name])
            return
        for key in sorted(self.taken):
            if key.kind == "study":
                yield f"restore_study_{key.name}", re.escape(key.name), kind.files(key.name)

    def computed(self, kind: Kind) -> list[str]:
        """Names of the entries none of whose records is restored."""
        names = {key.name for key in self.taken if key.kind == kind.name}
        return [name for name in kind.entries if name not in names]

    def constraint(self, kind: Kind) -> str:
        """Regular expression of the records of one kind that are restored."""
        folders = (self._here.folder(key) for key in self.taken if key.kind == kind.name)
        start = Path(kind.place.format(name="", seed="")).parts[:3]
        own = sorted(re.escape("/".join(folder.parts[len(start) :])) for folder in folders)
        return "|".join(own) or "none"

    def file_of(self, kind: Kind) -> Callable[[Any], str]:
        """Input function: the archive of the record `name` or `name/seed0`."""
        return lambda wildcards: str(self._places[_key(kind, wildcards.record)])

    def key_of(self, kind: Kind) -> Callable[[Any], str]:
        """Parameter function: what such a record is of, as JSON."""
        return lambda wildcards: json.dumps(_key(kind, wildcards.record))


def _key(kind: Kind, record: str) -> Key:
    name, _, seed = record.partition("/seed")
    return Key(kind.name, name, int(seed or 0))
