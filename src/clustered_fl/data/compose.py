"""Datasets put together from classes of others, such as FLT's "CIFAR20"."""

from collections.abc import Sequence

import numpy as np

from clustered_fl.data import dataset
from clustered_fl.data.dataset import Dataset
from clustered_fl.data.registry import Entry
from clustered_fl.errors import InputError


def first_classes(part: Dataset, count: int, entry: Entry) -> Dataset:
    """The rows of the `count` alphabetically first classes that `part` has, in their order.

    The result is complete if it has as many rows as the publisher made for so many classes (CIFAR:
    equally many per class), even where the copy lacks other classes: these are not wanted. Its note
    names the classes, because another copy may have others.

    Raises:
        InputError: if the copy has fewer classes.
    """
    if count > len(part.classes):
        raise InputError(
            f"{part.name} from {part.source} has {len(part.classes)} classes, wanted are {count}"
        )
    names = tuple(sorted(part.classes)[:count])
    number = np.full(len(part.classes), -1)
    number[[part.classes.index(name) for name in names]] = np.arange(count)
    y = number[part.y]
    train_rows = int((y[: part.train_rows] >= 0).sum())
    lacking = _lacking(part, entry, count, train_rows, int((y >= 0).sum()) - train_rows)
    chosen = f"{count} of its {len(part.classes)} classes here ({', '.join(names)})"
    note = "; ".join(filter(None, [lacking, chosen]))
    kept = (part.x[y >= 0], y[y >= 0], train_rows, names)
    return dataset.build(part.name, part.source, *kept, complete=not lacking, note=note)


def _lacking(part: Dataset, entry: Entry, classes: int, train: int, test: int) -> str:
    """What the chosen classes miss of the official rows; of a stand-in, that it is one."""
    if part.source == "builtin":
        return part.note
    counts = [(train, entry.rows.train, "training rows"), (test, entry.rows.test, "test rows")]
    counts = [(n, all_ * classes // len(entry.classes), what) for n, all_, what in counts]
    return ", ".join(f"{n:,} of {all_:,} {what}" for n, all_, what in counts if n != all_)


def join(name: str, parts: Sequence[Dataset]) -> Dataset:
    """All parts in one: their training rows, then their test rows; the classes one after another.

    Complete if every part is; the note gathers those of the parts.

    Raises:
        InputError: if two parts have a class of the same name.
    """
    classes = tuple(label for part in parts for label in part.classes)
    if len(set(classes)) < len(classes):
        twice = next(label for label in classes if classes.count(label) > 1)
        raise InputError(f"{name}: more than one of its parts has a class {twice!r}")
    first = np.cumsum([0, *(len(part.classes) for part in parts)])
    y = np.concatenate([part.y + start for part, start in zip(parts, first, strict=False)])
    is_test = [np.arange(len(part.y)) >= part.train_rows for part in parts]
    order = np.argsort(np.concatenate(is_test), kind="stable")
    return dataset.build(
        name,
        parts[0].source,
        np.concatenate([part.x for part in parts])[order],
        y[order],
        sum(part.train_rows for part in parts),
        classes,
        all(part.complete for part in parts),
        "; ".join(_told(part) for part in parts if part.note),
    )


def _told(part: Dataset) -> str:
    # Of a stand-in the note says at its very start what it is.
    return part.note if part.source == "builtin" else f"{part.name}: {part.note}"
