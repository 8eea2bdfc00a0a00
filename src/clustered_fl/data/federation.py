"""The clients of one experiment: what each holds, how it labels, on what it is tested.

A federation is index lists into a dataset, not a copy of it, and is stored as safetensors with a
JSON header, so that training needs neither the dataset libraries nor this partition code.
"""

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from clustered_fl.errors import InputError
from clustered_fl.files import replacing


@dataclass(frozen=True)
class Federation:
    """Clients by number; rows are positions in the dataset's pooled index.

    Attributes:
        train: training rows of each client.
        test_sets: distinct test sets; clients that share one are evaluated on it together.
        test_of: [clients] position in `test_sets`.
        label_maps: [clients, classes]; the client calls class y `label_maps[client, y]`, in
            training and in testing alike.
        groups: [clients] true group, used for scoring only.
        newcomers: the last so many clients are not there from the start (CFL Algorithm 4).
        replaces: [newcomers] the client that a newcomer was before its data changed (FLT Algorithm
            3), -1 for one that is new; empty if all are.
    """

    train: tuple[np.ndarray, ...]
    test_sets: tuple[np.ndarray, ...]
    test_of: np.ndarray
    label_maps: np.ndarray
    groups: np.ndarray
    newcomers: int = 0
    replaces: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))

    @property
    def clients(self) -> int:
        """Number of clients that take part in training."""
        return len(self.train) - self.newcomers

    @property
    def sizes(self) -> np.ndarray:
        """Training rows of each client, newcomers included."""
        return np.array([len(rows) for rows in self.train])


def _ragged(prefix: str, arrays: tuple[np.ndarray, ...]) -> dict[str, np.ndarray]:
    ends = np.cumsum([len(rows) for rows in arrays], dtype=np.int64)
    return {f"{prefix}.rows": np.concatenate(arrays).astype(np.int64), f"{prefix}.ends": ends}


def save(federation: Federation, path: Path) -> None:
    """Write the federation as safetensors, whole or not at all."""
    tensors = {
        **_ragged("train", federation.train),
        **_ragged("test", federation.test_sets),
        "test_of": federation.test_of.astype(np.int64),
        "label_maps": np.ascontiguousarray(federation.label_maps, dtype=np.int64),
        "groups": federation.groups.astype(np.int64),
        "replaces": federation.replaces.astype(np.int64),
    }
    header = {"federation": json.dumps({"newcomers": federation.newcomers})}
    with replacing(path) as beside:
        save_file(tensors, beside, header)


def load(path: Path) -> tuple[Federation, str]:
    """Read a federation and the SHA-256 of its file (16 hex digits).

    Raises:
        InputError: if the file is missing or damaged.
    """
    try:
        with safe_open(path, framework="numpy") as file:
            header = json.loads(file.metadata()["federation"])
            found = _assembled({name: file.get_tensor(name) for name in file.keys()}, header)
    except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"cannot read federation {path}: {error}; delete it and run again"
        ) from error
    return found, hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def _assembled(tensors: dict[str, np.ndarray], header: dict[str, int]) -> Federation:
    train, tests = (
        tuple(np.split(tensors[f"{part}.rows"], tensors[f"{part}.ends"][:-1]))
        for part in ("train", "test")
    )
    rest = (tensors[name] for name in ("test_of", "label_maps", "groups", "replaces"))
    *about, replaces = rest
    return Federation(train, tests, *about, header["newcomers"], replaces)
