"""Datasets composed of classes of others, such as FLT's "CIFAR20"."""

from collections.abc import Sequence

import numpy as np

from clustered_fl.data import dataset
from clustered_fl.data.dataset import Dataset
from clustered_fl.data.registry import Entry
from clustered_fl.errors import InputError


def first_classes(part: Dataset, count: int, entry: Entry) -> Dataset:
    """The rows of the `count` alphabetically first classes of `part`, in their original order.

    The result is complete if it has the publisher's number of rows for `count` classes (CIFAR has
    equally many per class). Its note names the classes, because another copy may have others.
    Raises: InputError if the copy has fewer classes.
    """
    there = len(part.classes)
    if count > there:
        raise InputError(f"{part.name} from {part.source} has {there} classes, wanted are {count}")
    names = tuple(sorted(part.classes)[:count])
    number = np.full(there, -1)
    number[[part.classes.index(name) for name in names]] = np.arange(count)
    y = number[part.y]
    train, test = (int((own >= 0).sum()) for own in np.split(y, [part.train_rows]))
    official = [(train, entry.rows.train, "training rows"), (test, entry.rows.test, "test rows")]
    counts = [(n, all_ * count // len(entry.classes), what) for n, all_, what in official]
    lacking = ", ".join(f"{n:,} of {all_:,} {what}" for n, all_, what in counts if n != all_)
    lacking = part.note if part.source == "builtin" else lacking
    chosen = f"{count} of its {there} classes here ({', '.join(names)})"
    note = "; ".join(filter(None, [lacking, chosen]))
    kept = (part.x[y >= 0], y[y >= 0], train, names)
    return dataset.build(part.name, part.source, *kept, complete=not lacking, note=note)


def join(name: str, parts: Sequence[Dataset]) -> Dataset:
    """All parts in one dataset: training rows first, then test rows; classes are concatenated.

    Raises: InputError if two parts have a class of the same name.
    """
    classes = tuple(label for part in parts for label in part.classes)
    if len(set(classes)) < len(classes):
        twice = next(label for label in classes if classes.count(label) > 1)
        raise InputError(f"{name}: more than one of its parts has a class {twice!r}")
    first = np.cumsum([0, *(len(part.classes) for part in parts)])
    y = np.concatenate([part.y + start for part, start in zip(parts, first, strict=False)])
    is_test = [np.arange(len(part.y)) >= part.train_rows for part in parts]
    order = np.argsort(np.concatenate(is_test), kind="stable")
    x = np.concatenate([part.x for part in parts])[order]
    # The note of built-in data already begins with what they are.
    notes = [p.note if p.source == "builtin" else f"{p.name}: {p.note}" for p in parts if p.note]
    complete, train_rows = all(p.complete for p in parts), sum(p.train_rows for p in parts)
    about = (train_rows, classes, complete, "; ".join(notes))
    return dataset.build(name, parts[0].source, x, y[order], *about)
