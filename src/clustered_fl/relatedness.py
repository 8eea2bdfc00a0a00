"""Who is related to whom: what a grouping leaves, for methods that average by it and for notebooks.

relatedness.safetensors    the arrays of `Relatedness`
comparisons.parquet        how well other settings would have found the true groups
record.json, cost.json     as of a run (`clustered_fl.records`)
"""

from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from clustered_fl.errors import InputError
from clustered_fl.files import replacing

FILE, COMPARISONS = "relatedness.safetensors", "comparisons.parquet"


@dataclass(frozen=True)
class Relatedness:
    """Relatedness of M clients and how it came about.

    Attributes:
        related: uint8 [M, M]; row i says whose models client i averages.
        groups: int64 [M], the disjoint clusters.
        placed: int64 [newcomers], for each the client whose model it gets.
        later: uint8 [M + newcomers, M + newcomers], found again with them; empty if it was not.
        distances: float32 [M, M], before the threshold.
        signatures: float32 [M + newcomers, k, e], what a client sends.
        points: float32 [M, k, u], signatures on the manifold; u = e where there is no UMAP.
    """

    related: np.ndarray
    groups: np.ndarray
    placed: np.ndarray
    later: np.ndarray
    distances: np.ndarray
    signatures: np.ndarray
    points: np.ndarray


def save(found: Relatedness, folder: Path) -> None:
    """Write the arrays to `folder`, whole or not at all."""
    arrays = {f.name: np.ascontiguousarray(getattr(found, f.name)) for f in fields(found)}
    with replacing(folder / FILE) as beside:
        save_file(arrays, beside)


def load(folder: Path) -> Relatedness:
    """Read what `save` wrote.

    Raises:
        InputError: if the file is missing or damaged.
    """
    path = folder / FILE
    try:
        return Relatedness(**load_file(path))
    except (OSError, SafetensorError, TypeError) as error:
        raise InputError(f"cannot read {path}: {error}; find the grouping again") from error
