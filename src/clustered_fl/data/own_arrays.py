"""Clients made from a user's own arrays, for `clustered_fl.simulation`."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np

from clustered_fl.data import dataset as datasets
from clustered_fl.data.federation import Federation
from clustered_fl.data.held_out import hold_out, with_tests
from clustered_fl.data.own_images import has_own_images, own_images
from clustered_fl.data.partitions import build_federation, partition_settings
from clustered_fl.data.shares import by_first_appearance
from clustered_fl.errors import InputError
from clustered_fl.options import require_seed, with_texts
from clustered_fl.randomness import generator

Groups = Mapping[Hashable, Hashable]
"""Group (number or name) of each owner."""


@dataclass(frozen=True)
class Clients:
    """Data and the clients that hold them.

    Attributes:
        names: the sorted owners, or numbers.
        grouped: whether the true groups are known; otherwise all clients are in one.
    """

    dataset: datasets.Dataset
    federation: Federation
    names: tuple[Hashable, ...]
    grouped: bool

    def __repr__(self) -> str:
        shape = " x ".join(map(str, self.dataset.x.shape[1:]))
        images, classes = len(self.dataset.x), len(self.dataset.classes)
        return f"<{len(self.names)} clients, {images:,} images {shape}, {classes} classes>"


def federation(
    x: np.ndarray,
    y: np.ndarray,
    owners: np.ndarray | None = None,
    partition: str | Mapping[str, Any] | None = None,
    groups: Groups | None = None,
    held_out: float = 0.2,
    seed: int = 0,
) -> Clients:
    """Clients made from your own images.

    Args:
        x: square images, uint8 [N, C, H, W] or [N, H, W].
        y: class of each image, numbers or names, [N].
        owners: client that holds each image, numbers or names, [N].
        partition: kind and settings of a partition, as in a ledger; in place of owners.
        groups: true group of each owner, for scores and the method `oracle`; a partition has its
            own.
        held_out: fraction of each client's images used for tests; of all images for a partition
            whose clients share test images.
        seed: of all random draws.
    Raises: InputError if images are not square, lengths differ, or there are too few images.
    """
    require_seed(seed)
    _require_one_source(owners, partition, groups)
    if not isinstance(held_out, Real) or not 0 < held_out < 1:
        raise InputError(f"held_out = {held_out!r} is not allowed; it must be between 0 and 1")
    x = _array("x", x)
    y = _one_per_image("y", y, len(x))
    if owners is None:
        named = {"kind": partition} if isinstance(partition, str) else partition
        return _dealt(x, y, with_texts(named, "partition", "kind"), held_out, seed)
    return _owned(x, y, _one_per_image("owners", owners, len(x)), groups, held_out, seed)


def _require_one_source(owners: Any, partition: Any, groups: Any) -> None:
    """Refuse owners beside a partition, what is no partition, and groups of anything but owners."""
    if (owners is None) == (partition is None):
        raise InputError("a federation needs owners or a partition, and not both")
    if owners is None and not isinstance(partition, str | Mapping):
        found = type(partition).__name__
        raise InputError(f"partition must be the name of a kind, or a dict, not {found}")
    if owners is None and groups is not None:
        raise InputError("groups are those of owners; a partition has its own")
    if groups is not None and not isinstance(groups, Mapping):
        found = type(groups).__name__
        raise InputError(f"groups must map each owner to its group, as a dict, not {found}")


def _array(name: str, values: Any) -> np.ndarray:
    """An array of at least one dimension; InputError for lists of different lengths."""
    try:
        return np.atleast_1d(values)
    except ValueError:
        raise InputError(f"{name} must be an array, not lists of different lengths") from None


def _one_per_image(name: str, values: Any, images: int) -> np.ndarray:
    """Whole numbers or names as an array [images]; InputError for anything else."""
    array = _array(name, values)
    if array.shape != (images,):
        found = f"shape {array.shape}"
        raise InputError(f"{name} must have one entry per image ({images}), not {found}")
    if images == 0:
        raise InputError("there are no images")
    if {*map(type, array.tolist())} not in ({int}, {bool}, {str}):
        raise InputError(f"{name} must hold whole numbers or names, not {array.dtype}")
    return array


def _dealt(
    x: np.ndarray, y: np.ndarray, partition: dict[str, Any], held_out: float, seed: int
) -> Clients:
    """Clients of a partition, with transformed images where the partition changes them."""
    if "kind" not in partition:
        raise InputError("a partition needs the setting `kind`, such as iid")
    settings = partition_settings(partition["kind"])
    if settings.model_fields["held_out"].default is None:
        shared = max(1, round(held_out * len(y)))
    else:  # every client holds out images of its own
        shared, partition = 1, {"held_out": held_out, **partition}
    order = generator(seed, "tests").permutation(len(y))
    dataset = _dataset(x, y, order, len(y) - shared)
    made = build_federation(dataset, seed, **partition)
    if has_own_images(partition):
        dataset = own_images(dataset, made, partition, seed)
    grouped = len(set(made.groups.tolist())) > 1
    return Clients(dataset, made, tuple(range(len(made.train))), grouped)


def _owned(
    x: np.ndarray,
    y: np.ndarray,
    owners: np.ndarray,
    groups: Groups | None,
    held_out: float,
    seed: int,
) -> Clients:
    """One client per owner, tested on a part of its images."""
    found, owner = np.unique(owners, return_inverse=True)
    names = tuple(found.tolist())
    known = dict.fromkeys(names, 0) if groups is None else groups
    true = numbered(known, names, "groups must have every owner")
    train, tests = hold_out([np.flatnonzero(owner == i) for i in range(len(names))], held_out, seed)
    if alone := [name for name, rows in zip(names, train, strict=True) if not len(rows)]:
        raise InputError(f"owner {alone[0]!r} has no image left to train on; its tests take one")
    order = np.concatenate([*train, *tests])
    dataset, position = _dataset(x, y, order, sum(map(len, train))), np.argsort(order)
    own = ([position[rows] for rows in part] for part in (train, tests))
    return Clients(dataset, with_tests(dataset, *own, true), names, grouped=groups is not None)


def numbered(groups: Groups, names: Sequence[Hashable], rule: str) -> np.ndarray:
    """Group number of each name, int64 [names], by first appearance.

    Args:
        rule: what `groups` must have; the start of the error message.
    Raises: InputError if a name has no group, or one that is neither a whole number nor a text, or
        a group is given for another name.
    """
    known = {*names}
    if absent := [name for name in names if name not in groups]:
        raise InputError(f"{rule}; {absent[0]!r} is missing")
    if others := [name for name in groups if name not in known]:
        raise InputError(f"{rule}, and no others; there is no {others[0]!r}")
    for name in names:
        if not isinstance(groups[name], Integral | str | np.bool_):
            found = f"that of {name!r} is {groups[name]!r}"
            raise InputError(f"a group must be a whole number or a name; {found}")
    return by_first_appearance(groups[name] for name in names)


def _dataset(x: np.ndarray, y: np.ndarray, order: np.ndarray, train_rows: int) -> datasets.Dataset:
    """Images with a channel axis, in `order`; classes are numbered by their sorted names."""
    if x.dtype != np.uint8 or x.ndim not in (3, 4) or x.shape[-1] != x.shape[-2]:
        allowed = "square images, uint8 (0 to 255) [N, C, H, W] or [N, H, W]"
        raise InputError(f"x must be {allowed}, not {x.dtype} of shape {x.shape}")
    names, numbers = np.unique(y, return_inverse=True)
    classes, numbers = tuple(map(str, names.tolist())), numbers.astype(np.int64)[order]
    x = (x[:, None] if x.ndim == 3 else x)[order].copy()  # the memory layout affects bits
    return datasets.build("your data", "arrays", x, numbers, train_rows, classes)
