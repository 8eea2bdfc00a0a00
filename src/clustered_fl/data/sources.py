"""Where a dataset comes from, in canonical form: built-in substitute, mirror folder or download."""

from pathlib import Path

import numpy as np

from clustered_fl.data import builtin, dataset, text
from clustered_fl.data.compose import first_classes, join
from clustered_fl.data.dataset import Dataset, Split
from clustered_fl.data.download import download
from clustered_fl.data.owners import divide, numbered
from clustered_fl.data.parquet import content_digest, files_there, read_split
from clustered_fl.data.registry import Content, Entry, find, read_registry
from clustered_fl.errors import InputError

SOURCES = ("builtin", "mirror", "download")


def prepare(
    name: str,
    source: str,
    mirror: Path,
    cache: Path,
    require_complete: bool = False,
    registry: Path = Path("config/datasets.yaml"),
) -> Dataset:
    """The dataset `name` of the registry in canonical form, from one of `SOURCES`.

    Args:
        mirror: folder with `<namespace>/<name>/{train,test}-*.parquet` (source "mirror").
        cache: folder that keeps what was downloaded, laid out like a mirror (source "download").
        require_complete: refuse partial data, as the scale `paper` does.
    Raises: InputError if there is no such dataset or source, or its data cannot be used.
    """
    table = read_registry(registry)
    entry, where = find(table, name), (source, mirror, cache)
    if isinstance(entry, Entry):
        return _read(entry, *where, require_complete)
    parts = []
    for part_name, classes in entry.union.items():
        # A part of which only some classes are wanted may lack others.
        part = _read(table[part_name], *where, require_complete and classes == "all")
        parts.append(part if classes == "all" else first_classes(part, classes, table[part_name]))
    joined = join(name, parts)
    if require_complete and not joined.complete:
        raise InputError(
            f"the complete {name} is required, but the source `{source}` has only "
            f"({joined.note}): complete the mirror or use the data source `download`"
        )
    return joined


def _read(entry: Entry, source: str, mirror: Path, cache: Path, require_complete: bool) -> Dataset:
    if source == "builtin":
        if require_complete:
            raise InputError(
                f"the complete {entry.name} is required, but the source `builtin` has a stand-in "
                f"only: use the data source `mirror` or `download`"
            )
        splits, note = builtin.stand_in(entry)
        return _canonical(splits, entry, source, note)
    if source == "mirror":
        return read_mirror(mirror, entry, require_complete)
    if source == "download":
        download(entry, cache / entry.hub)
        return read_mirror(cache, entry, require_complete, source)
    raise InputError(f"there is no data source {source!r}; choose from {', '.join(SOURCES)}")


def read_mirror(
    mirror: Path, entry: Entry, require_complete: bool = False, source: str = "mirror"
) -> Dataset:
    """Read `<mirror>/<entry.hub>`, check it against the entry and return it in canonical form.

    Rows keep the order of the files (some mirrors are sorted by class: partitions must shuffle).
    Raises: InputError if the folder is missing, incomplete where it must be complete, or altered.
    """
    folder = mirror / entry.hub
    if not folder.is_dir():
        raise InputError(f"{folder} does not exist: {_remedy(entry, folder)}")
    if entry.owner and not entry.rows.test and not files_there(folder, "test"):
        splits = divide(read_split(folder, "train", entry))
    else:
        splits = {split: read_split(folder, split, entry) for split in ("train", "test")}
    missing = _missing(splits, entry)
    if missing and (require_complete or entry.content):
        raise InputError(f"{folder} holds only {missing}: {_remedy(entry, folder)}")
    _require_known(splits, entry, folder, missing)
    return _canonical(splits, entry, source, missing)


def _require_known(splits: dict[str, Split], entry: Entry, folder: Path, missing: str) -> None:
    """Refuse other data in the place of the dataset's, as far as the entry has digests of them.

    A partial copy could be anything with the same columns, such as MNIST in the place of EMNIST.
    Where no digest is given, all classes must be there at least.
    """
    known = [entry.content] if entry.content else list(entry.partial if missing else ())
    if not known:
        if _classes(splits) < len(entry.classes):
            raise InputError(f"{folder} holds only {missing}: {_remedy(entry, folder)}")
        return
    found = {split: content_digest(splits[split]) for split in ("train", "test")}
    for split, digest in entry.content or ():
        if found[split] != digest:
            raise InputError(
                f"the {split} rows in {folder} are not those of {entry.name} (SHA-256 "
                f"{found[split][:16]}..., expected {digest[:16]}...): delete them, fetch "
                f"{entry.hub} again"
            )
    if Content(**found) not in known:
        raise InputError(
            f"{folder} holds only {missing}, and is no copy of {entry.name} that is known: "
            f"{_remedy(entry, folder)}, or, if you trust it, add {{train: {found['train']}, test: "
            f"{found['test']}}} to `partial` of {entry.name} in the table of datasets"
        )


def _classes(splits: dict[str, Split]) -> int:
    """Number of classes that have rows."""
    return len(np.unique(np.concatenate([split.labels for split in splits.values()])))


def _remedy(entry: Entry, folder: Path) -> str:
    if entry.host != "hub":
        return "use the data source `download`, or complete the mirror"
    revision = f" --revision {entry.revision}" if entry.revision else ""
    command = f"hf download {entry.hub} --repo-type dataset{revision} --local-dir {folder}"
    # Files of the hub lie one folder deeper: beside them the old ones would still be read.
    first = "delete the folder and " if folder.exists() else ""
    return f"use the data source `download`, or {first}run `{command}`"


def _missing(splits: dict[str, Split], entry: Entry) -> str:
    """What a partial copy has of the official rows and classes, "" if it has everything."""
    train, test = (len(splits[split].labels) for split in ("train", "test"))
    counts = [(train, entry.rows.train, "training rows"), (test, entry.rows.test, "test rows")]
    if not entry.rows.test:
        # One official split: a copy with its own test rows is complete when the sum is.
        counts = [(train + test, entry.rows.train, "rows")]
    counts.append((_classes(splits), len(entry.classes), "classes"))
    return ", ".join(f"{n:,} of {all_:,} {what}" for n, all_, what in counts if n != all_)


def _canonical(splits: dict[str, Split], entry: Entry, source: str, note: str) -> Dataset:
    """Pool both splits; a note means that this is not the complete data."""
    train, test = splits["train"], splits["test"]
    if train.classes != test.classes:
        raise InputError(f"the splits of {entry.name} name their classes differently")
    known: tuple[str, ...] = ()
    if entry.is_text:
        known = text.vocabulary(train.rows)
        x = text.encode([*train.rows, *test.rows], known, entry.shape[0])
    else:
        x = np.concatenate([train.rows, test.rows])
    y = np.concatenate([train.labels, test.labels])
    about = (train.classes, not note, note, known, numbered(train, test))
    return dataset.build(entry.name, source, x, y, len(train.labels), *about)
