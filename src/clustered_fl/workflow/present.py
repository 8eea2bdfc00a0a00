"""Which records of a plan are in place, and whether they are still what the plan would compute.

A record is valid as long as it was made with the settings and the code of the plan, as everything
that it rests on (`Kind.identity`), and from the data at hand, where there are any. Data are known
by their digest: where they came from, and when they were written, decide nothing.
"""

from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

from clustered_fl.data.dataset import header_of
from clustered_fl.records.archive import MARK, OTHER_DATA, Key
from clustered_fl.records.seal import RECORD, read_record
from clustered_fl.workflow.clients import Clients
from clustered_fl.workflow.kinds import Kind
from clustered_fl.workflow.places import Places


class Present:
    """The records that are in place, as rules ask for them.

    Args:
        data: folder of the datasets.
        forced: whether finished jobs are asked for again.
        places: where what is made lies.
    """

    def __init__(
        self,
        kinds: Iterable[Kind],
        clients: Clients,
        data: str,
        forced: Callable[[], bool],
        places: Places,
    ) -> None:
        self._kinds = {kind.name: kind for kind in kinds}
        self._clients, self._data, self._forced = clients, data, forced
        self._made = places.made
        self._header_of, self._record = cache(header_of), cache(self._load)
        self.identity = cache(self._identity)
        self.is_valid = cache(self._is_valid)

    def _identity(self, kind: str, name: str, seed: int) -> str:
        return self._kinds[kind].identity(name, seed, self.identity)

    def folder(self, key: Key) -> Path:
        """Where a record is, or will be, as rules name it."""
        return Path(self._kinds[key.kind].folder(key.name, key.seed))

    def _load(self, key: Key) -> dict[str, Any]:
        folder = self._in_folder(key, RECORD).parent
        return read_record(folder) if (folder / RECORD).exists() else {}

    def _in_folder(self, key: Key, name: str) -> Path:
        return Path(self._made(f"{self.folder(key)}/{name}"))

    def dataset(self, key: Key) -> str:
        """File of the data that something is computed from, "" without any."""
        config = self._kinds[key.kind][key.name].config
        if "federation" in config:
            return self._clients.dataset(config, key.seed)
        return f"{self._data}/{config['dataset']}.safetensors" if "dataset" in config else ""

    def are_at_hand(self, key: Key, digest: str) -> bool:
        """Whether the data here, if there are any, are those of this digest."""
        return self._digest(key) in (None, digest)

    def _digest(self, key: Key) -> str | None:
        return self._header_of(Path(self._made(self.dataset(key)))).get("digest")

    def _is_valid(self, key: Key) -> bool:
        record = self._record(key)
        if record.get("identity") != self.identity(*key):
            return False
        digest = record.get("data", {}).get("digest", "")
        return self.are_at_hand(key, digest) and all(map(self.is_valid, self.below(key)))

    def below(self, key: Key) -> list[Key]:
        """The records that one rests on."""
        entry = self._kinds[key.kind][key.name]
        return [self.key(kind, name, key.seed) for kind, name in entry.rests_on]

    def key(self, kind: str, name: str, seed: int | str) -> Key:
        """A record of what is computed once for all seeds is that of seed 0."""
        return Key(kind, name, int(seed) if self._kinds[kind].seeded else 0)

    def is_here(self, key: Key) -> bool:
        """Whether a record was computed here, with the settings and the code of the plan."""
        restored = self._in_folder(key, MARK).exists()
        return not restored and self._record(key).get("identity") == self.identity(*key)

    def other_data(self, key: Key) -> str:
        """Parameter of a job: it changes when the data at hand are no longer those of the record.

        A record that was made for this reason carries the value, so that it is the same after.
        """
        digest = self._record(key).get("data", {}).get("digest")
        if digest and not self.are_at_hand(key, digest):
            return self._digest(key)
        mark = self._in_folder(key, OTHER_DATA)
        return mark.read_text() if digest and mark.exists() else ""

    def wanted(self, key: Key, file: str) -> list[str]:
        """An input of a job, which does not rerun it as long as its record is valid.

        A valid record does not even ask for what would have to be made again. An input that is
        always `ancient` would not do: where it is made again, Snakemake looks no further, and would
        miss that the parameters of this job have changed too.
        """
        from snakemake.io import ancient

        if self._forced() or not self.is_valid(key):
            return [file]
        needed = file, self.dataset(key)
        there = all(Path(self._made(each)).exists() for each in needed)
        return [ancient(file)] if there else []
