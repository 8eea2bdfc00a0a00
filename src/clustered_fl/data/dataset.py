"""The canonical form of a dataset: two arrays or three, one digest, one file.

Every source (built-in stand-in, mirror folder, download) ends here, so that everything after the
dataset step reads one format and starts fast: this module needs numpy and safetensors only.
"""

import hashlib
import json
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from clustered_fl.errors import InputError
from clustered_fl.files import replacing

# One metadata key with canonical JSON: safetensors writes several keys in random order, and then
# two runs would leave different bytes.
_METADATA_KEY = "dataset"
_ARRAYS = ("x", "y", "owner")


def _nobody() -> np.ndarray:
    return np.empty(0, np.int64)


@dataclass(frozen=True)
class Dataset:
    """Official training rows followed by official test rows, as one pooled index.

    Attributes:
        name: key of the dataset in `config/datasets.yaml`.
        source: "builtin", "mirror" or "download".
        x: images uint8 [N, C, H, W] in 0..255, or token ids int32 [N, T].
        y: class of every row, int64 [N], 0 <= y < len(classes).
        train_rows: number of training rows; rows at or after it are test rows.
        classes: name of every class.
        digest: SHA-256 of the content (see `content_digest`).
        complete: whether all official rows are there.
        note: what a reader of a result must know of the data, "" if nothing.
        vocabulary: word of every token id (text only).
        owner: who wrote every row, int64 [N], numbered from 0 in the order of the sources' names
            of them over training and test rows together; empty where rows have no owners.
    """

    name: str
    source: str
    x: np.ndarray
    y: np.ndarray
    train_rows: int
    classes: tuple[str, ...]
    digest: str
    complete: bool
    note: str
    vocabulary: tuple[str, ...] = ()
    owner: np.ndarray = field(default_factory=_nobody)

    @property
    def described(self) -> dict[str, Any]:
        """What records say of the data that they were computed from."""
        about = ("name", "source", "digest", "train_rows", "complete", "note")
        return {name: getattr(self, name) for name in about} | {"rows": len(self.y)}


@dataclass(frozen=True)
class Split:
    """One split as a source yields it: images uint8 [N, C, H, W] or N texts, labels int64 [N].

    `owners` names the owner of every row, str [N]; empty where rows have none.
    """

    rows: np.ndarray | list[str]
    labels: np.ndarray
    classes: tuple[str, ...]
    owners: np.ndarray = field(default_factory=lambda: np.empty(0, str))


def build(
    name: str,
    source: str,
    x: np.ndarray,
    y: np.ndarray,
    train_rows: int,
    classes: tuple[str, ...],
    complete: bool = True,
    note: str = "",
    vocabulary: tuple[str, ...] = (),
    owner: np.ndarray | None = None,
) -> Dataset:
    """Check the arrays, compute their digest and return the dataset; no `owner` means no owners.

    Raises:
        InputError: if an array has another type or shape than `Dataset` promises.
    """
    who = _nobody() if owner is None else owner
    made = Dataset(
        name, source, x, y, train_rows, classes, "", complete, note, vocabulary, owner=who
    )
    problem = _problem(made)
    if problem:
        raise InputError(f"dataset {name} from {source}: {problem}")
    return replace(made, digest=_digest(made))


def content_digest(
    x: np.ndarray,
    y: np.ndarray,
    train_rows: int,
    classes: tuple[str, ...],
    vocabulary: tuple[str, ...] = (),
    owner: np.ndarray | None = None,
) -> str:
    """SHA-256 (hex) over the split, the names, and the type, shape and bytes of the arrays.

    Depends on the order of the rows: a federation stores row numbers, so the same images in another
    order are another dataset to it. Owners count only where there are any: data without them keep
    the digest that published results name.
    """
    sha = hashlib.sha256(json.dumps([train_rows, classes, vocabulary]).encode())
    for array in (x, y) if owner is None or not owner.size else (x, y, owner):
        sha.update(f"{array.dtype.str}{array.shape}".encode())
        sha.update(np.ascontiguousarray(array).data)
    return sha.hexdigest()


def save(dataset: Dataset, path: Path) -> None:
    """Write the dataset to `path`, whole or not at all; equal datasets give equal bytes.

    Raises:
        InputError: if the system cannot write there.
    """
    arrays = {name: np.ascontiguousarray(getattr(dataset, name)) for name in _ARRAYS}
    described = {f.name: getattr(dataset, f.name) for f in fields(Dataset) if f.name not in arrays}
    if not dataset.owner.size:
        del arrays["owner"]
    with replacing(path) as beside:
        save_file(arrays, beside, {_METADATA_KEY: json.dumps(described, sort_keys=True)})


def load(path: Path, verify: bool = False) -> Dataset:
    """Read a dataset written by `save`.

    Header, sizes, types and the range of the labels are always checked. `verify` recomputes the
    digest as well (about half a second per GB), which finds altered bytes: the step that prepares
    datasets asks for it, the many training jobs need not.

    Raises:
        InputError: if the file is missing, truncated, altered or something else.
    """
    dataset = _read(path)
    problem = _problem(dataset)
    if not problem and verify:
        problem = _digest_problem(dataset)
    if problem:
        raise _unusable(path, problem)
    return dataset


def _read(path: Path) -> Dataset:
    """The dataset as the file has it, before its content is checked."""
    try:
        with safe_open(path, framework="numpy") as stored:
            described: dict[str, Any] = json.loads(stored.metadata()[_METADATA_KEY])
            arrays = {key: stored.get_tensor(key) for key in stored.keys()}
        names = {key: tuple(described.pop(key)) for key in ("classes", "vocabulary")}
        return Dataset(**arrays, **described, **names)
    except FileNotFoundError:
        raise InputError(f"{path} does not exist: run the dataset step, which writes it") from None
    except (OSError, SafetensorError, TypeError, KeyError, ValueError) as error:
        raise _unusable(path, f"it is not a whole dataset file ({error})") from error


def _unusable(path: Path, problem: str) -> InputError:
    return InputError(f"cannot use {path}: {problem}; delete it and run the dataset step again")


def _digest(dataset: Dataset) -> str:
    content = ("x", "y", "train_rows", "classes", "vocabulary", "owner")
    return content_digest(**{name: getattr(dataset, name) for name in content})


def _digest_problem(dataset: Dataset) -> str:
    """A sentence if the content does not match the recorded digest, else ""."""
    found = _digest(dataset)
    if found == dataset.digest:
        return ""
    return f"its content was altered (SHA-256 {found[:16]}..., recorded {dataset.digest[:16]}...)"


def _problem(dataset: Dataset) -> str:
    """A sentence naming the first thing that `Dataset` does not allow, else ""."""
    x, y = dataset.x, dataset.y
    classes, words = len(dataset.classes), len(dataset.vocabulary)
    rank, kind = (2, np.int32) if words else (4, np.uint8)
    if x.ndim != rank or x.dtype != kind:
        return f"x must be {np.dtype(kind)} with {rank} axes, not {x.dtype} of shape {x.shape}"
    if y.shape != x.shape[:1] or y.dtype != np.int64:
        return f"y must be int64 with one label per row of x ({len(x)}), not {y.dtype} {y.shape}"
    if not 0 < dataset.train_rows < len(x):
        return (
            f"it must have training and test rows, not {dataset.train_rows} training rows of "
            f"{len(x)}"
        )
    if y.min() < 0 or y.max() >= classes:
        return f"labels must lie in 0..{classes - 1}, not {y.min()}..{y.max()}"
    if words and (x.min() < 0 or x.max() >= words):
        return f"token ids must lie in 0..{words - 1}, not {x.min()}..{x.max()}"
    return _owner_problem(dataset.owner, len(x)) if dataset.owner.size else ""


def _owner_problem(owner: np.ndarray, rows: int) -> str:
    if owner.shape != (rows,) or owner.dtype != np.int64:
        return (
            f"owner must be int64 with one owner per row of x ({rows}), not {owner.dtype} "
            f"{owner.shape}"
        )
    found = np.unique(owner)
    if not np.array_equal(found, np.arange(len(found))):
        return (
            f"owners must be numbered 0..{len(found) - 1} without gaps, not {found[0]}..{found[-1]}"
        )
    return ""
