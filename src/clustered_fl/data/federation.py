"""The clients of one experiment: what each holds, how it labels, on what it is tested.

A federation is index lists into a dataset, not a copy of it, and is stored as safetensors with a
JSON header, so that training needs neither the dataset libraries nor this partition code.
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from clustered_fl.data import partition
from clustered_fl.data.dataset import Dataset
from clustered_fl.errors import InputError
from clustered_fl.files import replacing
from clustered_fl.options import call
from clustered_fl.randomness import generator


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
        newcomers: the last so many clients take no part in training (CFL Algorithm 4).
    """

    train: tuple[np.ndarray, ...]
    test_sets: tuple[np.ndarray, ...]
    test_of: np.ndarray
    label_maps: np.ndarray
    groups: np.ndarray
    newcomers: int = 0

    @property
    def clients(self) -> int:
        """Number of clients that take part in training."""
        return len(self.train) - self.newcomers

    @property
    def sizes(self) -> np.ndarray:
        """Training rows of each client, newcomers included."""
        return np.array([len(rows) for rows in self.train])


def build_federation(dataset: Dataset, seed: int, kind: str = "", **settings: Any) -> Federation:
    """Create the federation `kind` with its settings from the ledger; same seed, same federation.

    Raises:
        InputError: if the kind is unknown, or the dataset cannot fill it.
    """
    if kind not in PARTITIONS:
        raise InputError(f"unknown partition {kind!r}; allowed are {', '.join(sorted(PARTITIONS))}")
    given = {"dataset": dataset, "seed": seed}
    return _checked(call(PARTITIONS[kind], f"partition {kind}", settings, **given))


def _checked(federation: Federation) -> Federation:
    empty = [i for i, rows in enumerate(federation.train) if not len(rows)]
    if empty:
        raise InputError(f"client {empty[0]} has no samples; every client needs at least one")
    if not all(map(len, federation.test_sets)):
        raise InputError("a test set is empty; every client needs at least one sample to test on")
    return federation


def _relabelled(
    dataset: Dataset, seed: int, clients: int, samples: int | None, newcomers: int, maps: np.ndarray
) -> Federation:
    """Equal random shares, one label map per group, everybody tested on all test rows."""
    groups = partition.group_of_clients(clients, len(maps))
    rows = np.arange(dataset.train_rows)
    train = partition.equal_shares(rows, clients, samples, generator(seed, "shares"))
    test = np.arange(dataset.train_rows, len(dataset.y))
    sets, test_of = [test], [0] * clients
    if newcomers:
        joining = partition.equal_shares(
            test, len(maps) * 2, newcomers, generator(seed, "newcomers")
        )[: len(maps)]
        train, groups = train + joining, np.concatenate([groups, np.arange(len(maps))])
        sets, test_of = [test, np.setdiff1d(test, joining)], test_of + [1] * len(maps)
    return Federation(
        tuple(train), tuple(sets), np.array(test_of), maps[groups], groups, len(groups) - clients
    )


def _label_swap(
    dataset: Dataset,
    seed: int,
    clients: int,
    groups: int,
    samples: int | None = None,
    swaps: tuple[tuple[int, int], ...] = (),
    newcomers: int = 0,
) -> Federation:
    maps = partition.label_swaps(len(dataset.classes), groups, swaps, generator(seed, "swaps"))
    return _relabelled(dataset, seed, clients, samples, newcomers, maps)


def _label_permutation(
    dataset: Dataset,
    seed: int,
    clients: int,
    groups: int,
    samples: int | None = None,
    newcomers: int = 0,
) -> Federation:
    rng = generator(seed, "permutations")
    maps = partition.label_permutations(len(dataset.classes), groups, rng)
    return _relabelled(dataset, seed, clients, samples, newcomers, maps)


def _congruent_pair(dataset: Dataset, seed: int, samples: int | None = None) -> Federation:
    """Two clients with disjoint labels, the lower and the upper half (CFL Fig. 8, congruent)."""
    classes = len(dataset.classes)
    upper = dataset.y >= classes // 2
    split = dataset.train_rows
    train, tests = [], []
    for client, holds in enumerate((~upper, upper)):
        rows = np.flatnonzero(holds[:split])
        rng = generator(seed, "shares", client)
        train += partition.equal_shares(rows, 1, samples, rng)
        tests.append(split + np.flatnonzero(holds[split:]))
    maps = np.tile(np.arange(classes), (2, 1))
    # Congruent: one model serves both, so there is one true group.
    return Federation(tuple(train), tuple(tests), np.arange(2), maps, np.zeros(2, dtype=np.int64))


def _topic_per_client(
    dataset: Dataset, seed: int, clients: int, held_out: float, samples: int | None = None
) -> Federation:
    """Every client holds texts of one class and is tested on a held-out part (CFL Fig. 10)."""
    groups = partition.group_of_clients(clients, len(dataset.classes))
    train, tests = [], []
    for topic in range(len(dataset.classes)):
        rows = np.flatnonzero(dataset.y[: dataset.train_rows] == topic)
        members = int((groups == topic).sum())
        for share in partition.equal_shares(
            rows, members, samples, generator(seed, "shares", topic)
        ):
            cut = round(len(share) * held_out)
            tests.append(share[:cut])
            train.append(share[cut:])
    maps = np.tile(np.arange(len(dataset.classes)), (clients, 1))
    return Federation(tuple(train), tuple(tests), np.arange(clients), maps, groups)


PARTITIONS: dict[str, Callable[..., Federation]] = {
    "label_swap": _label_swap,
    "label_permutation": _label_permutation,
    "congruent_pair": _congruent_pair,
    "topic_per_client": _topic_per_client,
}


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
    rest = (tensors[name] for name in ("test_of", "label_maps", "groups"))
    return Federation(train, tests, *rest, header["newcomers"])
