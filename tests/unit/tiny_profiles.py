"""Made-up groupings by profiles and runs with them, with everything that can be measured."""

from pathlib import Path
from zlib import crc32

import numpy as np
import pandas as pd
import tiny_records as tiny

from clustered_fl.files import write_json
from clustered_fl.groupings.agreement import agreement
from clustered_fl.groupings.distances import same_group
from clustered_fl.groupings.profiles.measurements import cosines
from clustered_fl.records import reading as records
from clustered_fl.records import relatedness
from clustered_fl.records.relatedness import Relatedness

DATA = {
    "name": "cifar10",
    "source": "builtin",
    "complete": False,
    "train_rows": 60,
    "note": "drawn",
}
DRIFT, STILL = {"kind": "dirichlet", "drift": {"transforms": 2}}, {"kind": "dirichlet"}
CLIENTS, NEWCOMERS, LABELS, TESTS = 12, 2, 4, 30


def random(folder: Path) -> np.random.Generator:
    """Draws that depend on the last two parts of a path, name and seed."""
    return np.random.default_rng(crc32("/".join(folder.parts[-2:]).encode()))


def rows(measure: str, values: np.ndarray, now: int = 4) -> list[dict]:
    """A symmetric measure [M, M] as rows of the table of measurements."""
    places = zip(*np.triu_indices(len(values), 1), strict=True)
    return [
        {"measure": measure, "round": now, "first": i, "second": j, "value": float(values[i, j])}
        for i, j in places
    ]


def counts(seed: int) -> np.ndarray:
    """Images of each label, two labels per client [CLIENTS + NEWCOMERS, LABELS]."""
    rng = np.random.default_rng(seed)
    found = np.zeros((CLIENTS + NEWCOMERS, LABELS), dtype=np.int64)
    for own in found:
        own[rng.choice(LABELS, 2, replace=False)] = rng.integers(10, 40, 2)
    return found


def of_clients(own: np.ndarray) -> list[dict]:
    """What the table says of the labels and tests of clients [n, classes]."""
    place = {"round": 4}
    return [
        row
        for client, values in enumerate(own.tolist())
        for row in (
            *(
                place | {"measure": "labels", "first": client, "second": label, "value": float(n)}
                for label, n in enumerate(values)
            ),
            place | {"measure": "tests", "first": client, "second": -1, "value": 5.0 + client},
        )
    ]


def hits(groups: np.ndarray, rng: np.random.Generator) -> list[dict]:
    """So many passes of Algorithm 1 per cluster; the larger a cluster, the more hits."""
    found = []
    for group in range(groups.max() + 1):
        members = np.flatnonzero(groups == group)
        for reference in rng.choice(members, TESTS).tolist():
            hit = float(rng.random() < 0.5 + 0.5 * len(members) / len(groups))
            found.append({"first": group, "second": reference, "value": hit})
    return [row | {"measure": "robustness", "round": 4} for row in found]


def write_grouping(
    folder: Path,
    seed: int,
    clusters: int = 3,
    federation: dict | None = None,
    truth: list[int] | None = None,
) -> str:
    """A grouping whose vectors are label counts with noise that shrinks over the rounds 1, 2, 4."""
    federation = DRIFT if federation is None else federation
    rng, own = random(folder), counts(seed)
    vectors = {
        now: own / own.sum(1, keepdims=True) + rng.normal(size=own.shape) / (2 + 3 * now)
        for now in (1, 2, 4)
    }
    groups = np.concatenate([np.arange(clusters), rng.integers(clusters, size=CLIENTS - clusters)])
    table = of_clients(own) + hits(groups, rng)
    for now, each in vectors.items():
        table += rows("cosine", cosines(each[:CLIENTS]), now)
    if federation.get("drift"):
        looks = np.random.default_rng(seed).normal(size=(CLIENTS, 3)) + 1
        table += rows("similarity", (cosines(looks) + 1) / 2)
    folder.mkdir(parents=True)
    arrays = same_group(groups), groups, np.zeros(NEWCOMERS, np.int64), np.zeros((0, 0), np.uint8)
    sent = vectors[4][:, None].astype(np.float32)
    apart = np.zeros((CLIENTS, CLIENTS), np.float32)
    relatedness.save(Relatedness(*arrays, apart, sent, sent[:CLIENTS]), folder)
    pd.DataFrame(table).to_parquet(folder / relatedness.COMPARISONS)
    true = np.zeros(CLIENTS, int) if truth is None else np.array(truth)
    method = {"name": "repa", "clusters": clusters}
    config = {"dataset": "cifar10", "federation": federation, "seed": seed, "method": method}
    record = {"config": config, "data": DATA, "groups": groups.tolist()}
    record |= {"true_groups": true.tolist(), "agreement": agreement(arrays[0], true)}
    write_json(folder / records.RECORD, record)
    write_json(folder / records.COST, {"seconds": 1.0})
    return str(folder)


def write_run(folder: Path, clusters: int = 3, best: float = 0.8) -> str:
    """Ten rounds of a run in which half of the clients take part, with newcomers."""
    rng = random(folder)
    groups = np.concatenate([np.arange(clusters), rng.integers(clusters, size=CLIENTS - clusters)])
    measured = []
    for now in range(11):
        level = best * (1 - np.exp(-now / 3)) + 0.03 * rng.normal(size=CLIENTS + NEWCOMERS)
        for client, value in enumerate(np.clip(level, 0, 1).tolist()):
            scope = "client" if client < CLIENTS else "newcomer"
            measured.append((now, scope, client, "accuracy", value))
        took_part = rng.choice(CLIENTS, CLIENTS // 2, replace=False) if now < 10 else []
        measured += [(now, "client", int(client), "loss", 1.0) for client in took_part]
    content = tiny.record(groups=groups.tolist(), true_groups=[0, 1, 2] * (CLIENTS // 3), data=DATA)
    return tiny.write(folder, content, measured)
