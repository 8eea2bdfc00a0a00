"""The result of a grouping, for methods that average by it and for notebooks.

relatedness.safetensors    the first four arrays of `Relatedness`
signatures.safetensors     the other arrays, which can be large
comparisons.parquet        scores of other settings, or other measurements
record.json, cost.json     as for a run (`clustered_fl.records.reading`)
"""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from safetensors.numpy import load_file, save_file

from clustered_fl.errors import InputError
from clustered_fl.files import replacing
from clustered_fl.records.seal import opened, verified

if TYPE_CHECKING:
    import pandas as pd

FILE, SIGNATURES = "relatedness.safetensors", "signatures.safetensors"
COMPARISONS = "comparisons.parquet"
SENT = ("distances", "signatures", "points")


@dataclass(frozen=True)
class Relatedness:
    """Relatedness of M clients and the data it was computed from.

    Attributes:
        related: uint8 [M, M]; row i marks the clients whose models client i averages.
        groups: int64 [M], the disjoint clusters.
        placed: int64 [newcomers], the client whose model each newcomer gets.
        later: uint8 [M + newcomers, M + newcomers], with newcomers; empty if not computed.
        distances: float32 [M, M], before the threshold.
        signatures: float32 [M + newcomers, k, e], what a client sends.
        points: float32 [M, k, u], embedded signatures; u = e without UMAP.
    """

    related: np.ndarray
    groups: np.ndarray
    placed: np.ndarray
    later: np.ndarray
    distances: np.ndarray
    signatures: np.ndarray
    points: np.ndarray


def require_clients(found: Relatedness, clients: int, newcomers: int) -> None:
    """Refuse a grouping of other clients, or one that leaves a client without any model.

    Args:
        newcomers: number of newcomers that it must have placed.
    Raises: InputError.
    """
    if found.related.shape != (len(found.related),) * 2:
        raise InputError(f"`related` must be a square matrix, not {found.related.shape}")
    if (alone := np.flatnonzero(~found.related.any(1))).size:
        raise InputError(f"row {alone[0]} of `related` is empty: that client averages no model")
    for kind, number, wanted in (
        ("clients", len(found.related), clients),
        ("newcomers", len(found.placed), newcomers or len(found.placed)),
    ):
        if number != wanted:
            raise InputError(f"the grouping is of {number} {kind}; there are {wanted}")


def save(found: Relatedness, folder: Path) -> None:
    """Write the arrays to `folder`, each file atomically."""
    arrays = {f.name: np.ascontiguousarray(getattr(found, f.name)) for f in fields(found)}
    sent = {name: arrays.pop(name) for name in SENT}
    if np.array_equal(sent["points"], sent["signatures"][: len(sent["points"])]):
        del sent["points"]
    for name, content in ((SIGNATURES, sent), (FILE, arrays)):
        with replacing(folder / name) as beside:
            save_file(content, beside)


def load(folder: Path, signatures: bool = True) -> Relatedness:
    """Read what `save` wrote.

    Args:
        signatures: also read signatures, points and distances, which are otherwise empty.
    Raises: InputError if a file is missing or damaged.
    """
    found, empty = _arrays(folder, FILE), np.zeros((0, 0, 0), np.float32)
    sent = _arrays(folder, SIGNATURES) if signatures else dict.fromkeys(SENT, empty)
    sent.setdefault("points", sent["signatures"][: len(found["groups"])])
    return Relatedness(**found, **sent)


def _arrays(folder: Path, name: str) -> dict[str, np.ndarray]:
    with opened(folder, name) as path:
        return load_file(path)


def load_comparisons(folder: Path) -> "pd.DataFrame":
    """The table `comparisons.parquet`: scores of other settings, or other measurements."""
    import pandas as pd

    with verified(folder, COMPARISONS) as path:
        return pd.read_parquet(path)
