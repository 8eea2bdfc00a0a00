"""The canonical form of a dataset from any source: two or three arrays, one digest, one file.

The module imports only numpy and safetensors, so that readers of datasets start fast.
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
from clustered_fl.files import digest, replacing, set_aside

# One metadata key with canonical JSON: safetensors writes several keys in random order.
_METADATA_KEY = "dataset"
_ARRAYS = ("x", "y", "owner")


@dataclass(frozen=True)
class Dataset:
    """Official training rows followed by official test rows, as one pooled index.

    Attributes:
        name: key of the dataset in `config/datasets.yaml`.
        source: "builtin", "mirror" or "download".
        x: images uint8 [N, C, H, W] in 0..255, or token ids int32 [N, T].
        y: class of every row, int64 [N], 0 <= y < len(classes).
        train_rows: number of training rows; all later rows are test rows.
        digest: SHA-256, see `content_digest`.
        complete: whether all official rows are there.
        note: what a reader of a result must know about the data, or "".
        vocabulary: word of each token id (text only).
        owner: writer of each row, int64 [N], numbered by name; empty if rows have no owners.
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
    owner: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))

    @property
    def described(self) -> dict[str, Any]:
        """The description of the data that records contain."""
        about = ("name", "source", "digest", "train_rows", "complete", "note")
        return {name: getattr(self, name) for name in about} | {"rows": len(self.y)}


@dataclass(frozen=True)
class Split:
    """One split as read from a source: images uint8 [N, C, H, W] or N texts, labels int64 [N].

    `owners` names the owner of each row, str [N]; empty if rows have none.
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
    """A dataset of these arrays with its digest; InputError if a type or shape is not allowed."""
    owner = np.empty(0, np.int64) if owner is None else owner
    about = (train_rows, classes, "", complete, note, vocabulary, owner)
    made = Dataset(name, source, x, y, *about)
    problem = _problem(made)
    if problem:
        raise InputError(f"dataset {name} from {source}: {problem}")
    return replace(made, digest=content_digest(made))


def with_images(dataset: Dataset, x: np.ndarray, note: str) -> Dataset:
    """The dataset with transformed images `x`; `note` describes the transformation."""
    kept = {name: value for name, value in vars(dataset).items() if name != "digest"}
    return build(**kept | {"x": x, "note": "; ".join(filter(None, (dataset.note, note)))})


def content_digest(dataset: Dataset) -> str:
    """SHA-256 (hex) of the split, the names, and the arrays' types, shapes and bytes.

    It depends on the order of rows, because a federation stores row numbers. Owners are included
    only if there are any, so that data without owners keep the digest in published results.
    """
    names = [dataset.train_rows, dataset.classes, dataset.vocabulary]
    sha = hashlib.sha256(json.dumps(names).encode())
    for array in _arrays(dataset).values():
        sha.update(f"{array.dtype.str}{array.shape}".encode())
        sha.update(array.data)
    return sha.hexdigest()


def save(dataset: Dataset, path: Path) -> None:
    """Write the dataset to `path` atomically; equal datasets give equal bytes."""
    about = {f.name: getattr(dataset, f.name) for f in fields(Dataset) if f.name not in _ARRAYS}
    about["header"] = digest(about)
    with replacing(path) as beside:
        save_file(_arrays(dataset), beside, {_METADATA_KEY: json.dumps(about, sort_keys=True)})


def _arrays(dataset: Dataset) -> dict[str, np.ndarray]:
    names = _ARRAYS if dataset.owner.size else _ARRAYS[:2]
    return {name: np.ascontiguousarray(getattr(dataset, name)) for name in names}


def load(path: Path, name: str | None = None) -> Dataset:
    """Read a dataset written by `save` and verify its digest (half a second per GB).

    Raises: InputError if the file is missing, truncated, altered, or of another kind or `name`.
    """
    try:
        with safe_open(path, framework="numpy") as stored:
            described = _described(stored.metadata()[_METADATA_KEY])
            arrays = {key: stored.get_tensor(key) for key in stored.keys()}
        names = {key: tuple(described.pop(key)) for key in ("classes", "vocabulary")}
        dataset = Dataset(**arrays, **described, **names)
    except FileNotFoundError:
        raise InputError(f"{path} does not exist: run the dataset step, which writes it") from None
    except (OSError, SafetensorError, TypeError, KeyError, ValueError) as error:
        raise set_aside(path, f"it is not a whole dataset file ({error})") from error
    problem, known = _problem(dataset), dataset.digest
    if name not in (None, dataset.name):
        problem = f"it has the data of {dataset.name}, wanted are those of {name}"
    if not problem and (found := content_digest(dataset)) != known:
        problem = f"its content was altered (SHA-256 {found[:16]}..., recorded {known[:16]}...)"
    if problem:
        raise set_aside(path, problem)
    return dataset


def _described(header: str) -> dict[str, Any]:
    """The content of a header without its own digest, which older files lack."""
    described = json.loads(header)
    if (known := described.pop("header", None)) and known != digest(described):
        raise ValueError("its header was altered")
    return described


def header_of(path: Path) -> dict[str, Any]:
    """The description in a dataset's file, without its arrays; empty if there is no such file."""
    try:
        with safe_open(path, framework="numpy") as stored:
            return _described(stored.metadata()[_METADATA_KEY])
    except (OSError, SafetensorError, TypeError, KeyError, ValueError):
        return {}


def _problem(dataset: Dataset) -> str:
    """The first violation of the constraints of `Dataset` as a sentence, else ""."""
    x, y = dataset.x, dataset.y
    classes, words = len(dataset.classes), len(dataset.vocabulary)
    rank, kind = (2, np.int32) if words else (4, np.uint8)
    if x.ndim != rank or x.dtype != kind:
        return f"x must be {np.dtype(kind)} with {rank} axes, not {x.dtype} of shape {x.shape}"
    if y.shape != x.shape[:1] or y.dtype != np.int64:
        return f"y must be int64 with one label per row of x ({len(x)}), not {y.dtype} {y.shape}"
    if not 0 < dataset.train_rows < len(x):
        found = f"{dataset.train_rows} training rows of {len(x)}"
        return f"it must have training and test rows, not {found}"
    if y.min() < 0 or y.max() >= classes:
        return f"labels must lie in 0..{classes - 1}, not {y.min()}..{y.max()}"
    if words and (x.min() < 0 or x.max() >= words):
        return f"token ids must lie in 0..{words - 1}, not {x.min()}..{x.max()}"
    return _owner_problem(dataset.owner, len(x)) if dataset.owner.size else ""


def _owner_problem(owner: np.ndarray, rows: int) -> str:
    if owner.shape != (rows,) or owner.dtype != np.int64:
        found = f"{owner.dtype} {owner.shape}"
        return f"owner must be int64 with one owner per row of x ({rows}), not {found}"
    numbers = np.unique(owner)
    if not np.array_equal(numbers, np.arange(len(numbers))):
        expected, found = f"0..{len(numbers) - 1}", f"{numbers[0]}..{numbers[-1]}"
        return f"owners must be numbered {expected} without gaps, not {found}"
    return ""
