"""Damage of every kind to every file that jobs leave, and what readers say of it.

    PYTHONPATH=src python tests/unit/damage.py 134

counts the outcomes of so many damages to each kind of file; `test_damage.py` does it with a few.
"""

import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from clustered_fl.claims.verdicts import COLUMNS
from clustered_fl.data import dataset as datasets
from clustered_fl.data import federation as federations
from clustered_fl.data.partitions import build_federation
from clustered_fl.encoders.storage import load_encoder, load_pictures
from clustered_fl.engine import checkpoint
from clustered_fl.errors import InputError
from clustered_fl.files import write_sum
from clustered_fl.jobs import encode, group, study
from clustered_fl.jobs import train as runs
from clustered_fl.records import archive, relatedness
from clustered_fl.records import reading as records
from clustered_fl.records.archive import Key, pack, unpack
from clustered_fl.records.reading import Origin
from clustered_fl.report.verdicts import read_verdicts

ORIGIN, RUN, SEEDS = Origin("code", "identity"), "checkpoint of this run", (0, 1)
LOCAL = {"epochs": 1, "batch_size": 10, "lr": 0.1}
CFL = {"name": "cfl", "schedule": [1], "similarities": True}
STUDY = {"function": "cfl.violations.assumption_violations", "seed": 0}


def silent(_: str) -> None:
    """Say nothing of progress."""


def finish(folder: Path) -> None:
    """Compute a tiny run, grouping, encoder and study with all that they need, for two seeds."""
    for seed in SEEDS:
        own = folder / f"seed{seed}"
        random = np.random.default_rng(seed)
        x, y = random.integers(0, 256, (120, 1, 28, 28)).astype(np.uint8), np.arange(120) % 10
        data = datasets.build("mnist", "builtin", x, y, 80, tuple("0123456789"), note="drawn")
        datasets.save(data, own / "data.safetensors")
        settings = {"kind": "label_permutation", "clients": 4, "groups": 2, "samples": 10}
        settings |= {"newcomers": 4}
        built = build_federation(data, seed, **settings)
        federations.save(built, own / "federation.safetensors", data.digest, [settings, seed])
        inputs = {"data": own / "data.safetensors", "federation": own / "federation.safetensors"}
        config = {"run": "tiny", "seed": seed, "dataset": "mnist", "federation": settings}
        asked = {"model": {"name": "small_conv_net"}, "training": LOCAL, "method": CFL}
        asked |= {"rounds": 3, "evaluate_every": 1, "keep_every": 0}
        paths = {"out": own / "run", "saved": own / "none", "grouping": None}
        how = {"device": "cpu", "path": "sequential", "workers": 1, "tell": silent}
        runs.execute(config | asked, **inputs, **paths, **how, origin=ORIGIN)
        asked = {"method": {"name": "pacfl", "clusters": 2}}
        about = {"saved": own / "none", "origin": ORIGIN, "device": "cpu", "tell": silent}
        group.execute(config | asked, **inputs, encoder=None, out=own / "grouping", **about)
        asked = {"model": {"name": "conv_autoencoder"}, "training": {"epochs": 1}}
        encode.execute(asked, inputs["data"], own / "encoder", **about)
        study.execute(STUDY | {"settings": {"points_per_client": 20 + seed}}, ORIGIN, own / "study")
        _rest(own, seed)


def _rest(own: Path, seed: int) -> None:
    """A checkpoint, verdicts and an archive."""
    tensors = {"models": torch.randn(3, 50), "rows": torch.arange(9, dtype=torch.uint8)}
    checkpoint.save(own / "checkpoint", RUN + str(seed), tensors, {"completed": seed, "tree": [1]})
    row = dict.fromkeys(COLUMNS, f"text {seed}") | {"scale": "demo", "verdict": "CONFIRMED"}
    pd.DataFrame([row] * 3).to_csv(own / "verdicts.csv", index=False)
    write_sum(own / "verdicts.csv")
    packed = pack(Key("run", "tiny", seed), "tiny", own / "run", "here")
    archive.write(own / "records.parquet", [packed])


def restored(own: Path) -> dict[str, bytes]:
    """What comes out of the archive."""
    (packed,) = archive.read(own / "records.parquet").values()
    unpack(packed, own / "again")
    return {path.name: path.read_bytes() for path in sorted((own / "again").iterdir())}


def continued(own: Path) -> Any:
    """What a run continues with; what it says of a damaged checkpoint is a sentence."""

    def told(line: str) -> None:
        raise InputError(line)

    return checkpoint.load(own / "checkpoint", RUN + own.name[-1], told)


def federation(own: Path) -> Any:
    """What a run receives about its clients."""
    (record,) = (records.load_record(own / "run"),)
    made_by = [record["config"]["federation"], int(own.name[-1])]
    return vars(federations.load(own / "federation.safetensors", made_by=made_by)[0])


def packed(kind: str) -> Callable[[Path], Any]:
    """What is published of a record."""
    return lambda own: pack(Key(kind, "tiny", 0), "tiny", own / kind, "here")


# File -> what reads it.
READERS: dict[str, Callable[[Path], Any]] = {
    "run/record.json": lambda own: records.load_record(own / "run"),
    "run/cost.json": lambda own: records.load_record(own / "run"),
    "run/rounds.parquet": lambda own: records.load_rounds(own / "run"),
    "run/models.safetensors": lambda own: records.load_models(own / "run"),
    "grouping/record.json": packed("grouping"),
    "grouping/relatedness.safetensors": lambda own: relatedness.load(own / "grouping", False),
    "grouping/signatures.safetensors": lambda own: relatedness.load(own / "grouping"),
    "grouping/comparisons.parquet": lambda own: relatedness.load_comparisons(own / "grouping"),
    "encoder/record.json": lambda own: load_encoder(own / "encoder").state_dict(),
    "encoder/encoder.safetensors": lambda own: load_encoder(own / "encoder").state_dict(),
    "encoder/pictures.safetensors": lambda own: load_pictures(own / "encoder"),
    "study/record.json": packed("study"),
    "study/cost.json": packed("study"),
    "study/points.parquet": lambda own: records.load_tables(own / "study"),
    "data.safetensors": lambda own: vars(datasets.load(own / "data.safetensors")),
    "federation.safetensors": federation,
    "checkpoint": continued,
    "verdicts.csv": lambda own: read_verdicts(own / "verdicts.csv", "demo"),
    "verdicts.csv.sha256": lambda own: read_verdicts(own / "verdicts.csv", "demo"),
    "records.parquet": restored,
}
NOT_SWAPPED = ("data.safetensors", "records.parquet")
"""Those of others are whole; the plan knows by digests that they are others."""


def damages(content: bytes, other: bytes | None, random: np.random.Generator) -> Iterator[bytes]:
    """One damage after another: a flipped bit, a shorter file, zeros, another record's file."""
    while True:
        at, bit = int(random.integers(len(content))), 1 << int(random.integers(8))
        yield content[:at] + bytes([content[at] ^ bit]) + content[at + 1 :]
        yield content[: int(random.integers(len(content)))]
        end = at + int(random.integers(1, 512))
        yield content[:at] + bytes(len(content[at:end])) + content[end:]
        if other is not None:
            yield other


def plain(value: Any) -> Any:
    """A value that can be compared, bit by bit."""
    if isinstance(value, pd.DataFrame):
        return [str(value.dtypes.to_dict()), value.to_csv()]
    if isinstance(value, torch.Tensor):
        return plain(value.numpy())
    if isinstance(value, np.ndarray):
        return [str(value.dtype), value.shape, value.tobytes()]
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, relatedness.Relatedness):
        return plain(vars(value))
    return [plain(each) for each in value] if isinstance(value, list | tuple) else value


def outcome(name: str, content: bytes, pristine: Path, place: Path) -> str:
    """What a reader makes of a file with this content: told, same, silent or traceback."""
    own = place / "seed0"
    shutil.rmtree(own, ignore_errors=True)
    shutil.copytree(pristine / "seed0", own)
    (own / name).write_bytes(content)
    try:
        found = READERS[name](own)
    except InputError as error:
        return "told" if "\n" not in str(error) else "traceback"
    except Exception:
        return "traceback"
    if found is None:  # another run's checkpoint: this one starts at the beginning
        return "same"
    return "same" if plain(found) == plain(READERS[name](pristine / "seed0")) else "silent"


def count(name: str, number: int, pristine: Path, place: Path) -> Counter[str]:
    """Outcomes of so many damages to one file."""
    whole, other = ((pristine / f"seed{seed}" / name).read_bytes() for seed in SEEDS)
    other = None if name in NOT_SWAPPED else other
    made = damages(whole, other, np.random.default_rng([len(name), number]))
    return Counter(outcome(name, next(made), pristine, place) for _ in range(number))


def main() -> None:
    """Print the counts of each file."""
    with tempfile.TemporaryDirectory() as folder:
        pristine = Path(folder, "pristine")
        finish(pristine)
        for name in READERS:
            found = count(name, int(sys.argv[1]), pristine, Path(folder, "damaged"))
            print(name, dict(found), flush=True)


if __name__ == "__main__":
    main()
