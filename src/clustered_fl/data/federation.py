"""The clients of an experiment as lists of rows of a dataset, stored as safetensors."""

import hashlib
import json
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from clustered_fl.errors import InputError
from clustered_fl.files import content_digest, digest, replacing, set_aside

_ARRAYS = ("test_of", "label_maps", "groups", "replaces")


@dataclass(frozen=True)
class Federation:
    """Clients by number; rows are positions in the dataset's pooled index.

    Attributes:
        train: training rows of each client.
        test_sets: distinct test sets; clients that share one are evaluated on it together.
        test_of: [clients] position in `test_sets`.
        label_maps: [clients, classes], a client's label of each class, in training and in tests.
        groups: [clients] true group, used for scoring only.
        newcomers: number of clients, the last ones, that join after training (CFL Algorithm 4).
        replaces: [newcomers] the client that a newcomer replaces because its data changed (FLT
            Algorithm 3), -1 for a new client; empty if all are new.
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

    @cached_property
    def sizes(self) -> np.ndarray:
        """Training rows of each client, newcomers included."""
        return np.array([len(rows) for rows in self.train])

    def tests_of(self, client: int) -> np.ndarray:
        """Test rows of a client."""
        return self.test_sets[self.test_of[client]]

    def rows_of(self, client: int) -> np.ndarray:
        """All training and test rows of a client, ascending."""
        return np.union1d(self.train[client], self.tests_of(client))


def save(federation: Federation, path: Path, data: str, made_by: Any = None) -> None:
    """Write the federation as safetensors, atomically.

    Args:
        data: digest of the dataset whose rows it lists.
        made_by: settings and seed, by which a reader identifies it.
    """
    tensors = {name: np.ascontiguousarray(getattr(federation, name), np.int64) for name in _ARRAYS}
    for name, parts in (("train", federation.train), ("test", federation.test_sets)):
        tensors[f"{name}.rows"] = np.concatenate(parts).astype(np.int64)
        tensors[f"{name}.ends"] = np.cumsum([len(rows) for rows in parts], dtype=np.int64)
    about = {"newcomers": federation.newcomers, "data": data, "made_by": digest(made_by)}
    about["digest"] = content_digest(tensors, about)
    with replacing(path) as beside:
        save_file(tensors, beside, {"federation": json.dumps(about)})


def load(path: Path, data: str | None = None, made_by: Any = None) -> tuple[Federation, str]:
    """A federation and the SHA-256 of its file (16 hex digits).

    Raises: InputError if it is missing or damaged, made with other settings, or for another
        dataset than the one with digest `data`.
    """
    try:
        with safe_open(path, framework="numpy") as file:
            header = json.loads(file.metadata()["federation"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}
        if header.pop("digest") != content_digest(tensors, header):
            raise ValueError("its content is not what was written")
        if made_by and header["made_by"] not in (digest(made_by), digest(None)):
            raise ValueError("it is that of another partition or seed")
        train, tests = (
            tuple(np.split(tensors[f"{part}.rows"], tensors[f"{part}.ends"][:-1]))
            for part in ("train", "test")
        )
        about = {name: tensors[name] for name in _ARRAYS} | {"newcomers": header["newcomers"]}
    except (FileNotFoundError, PermissionError) as error:
        raise InputError(f"cannot read federation {path}: {error}") from error
    except (OSError, SafetensorError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise set_aside(path, str(error)) from error
    if data not in (None, made_of := header["data"]):
        raise set_aside(path, f"it lists rows of other data (SHA-256 {made_of[:16]}...)")
    return Federation(train, tests, **about), hashlib.sha256(path.read_bytes()).hexdigest()[:16]
