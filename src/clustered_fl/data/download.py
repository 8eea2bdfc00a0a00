"""Fetching a dataset once; afterwards everything reads local files.

What arrives has exactly the layout of a mirror, so there is one reader for both.
"""

import io
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from clustered_fl.data.parquet import shards
from clustered_fl.data.registry import Entry
from clustered_fl.errors import InputError
from clustered_fl.files import replacing

ATTEMPTS = 3


def download(entry: Entry, folder: Path) -> None:
    """Fetch what the publisher made, one split or two, unless it is there already.

    Tries `ATTEMPTS` times, waiting 1 and 2 s between, because hosts of datasets fail often.

    Raises:
        InputError: if the dataset cannot be fetched, with the last reason.
    """
    if _is_there(entry, folder):
        return
    fetch = FETCH[entry.host]
    for attempt in range(ATTEMPTS):
        try:
            fetch(entry, folder)
            return
        except InputError:
            raise
        # Three libraries raise their own families of network errors here; each means "try again".
        except Exception as error:
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
        if attempt + 1 < ATTEMPTS:
            time.sleep(2**attempt)
    raise InputError(
        f"cannot download {entry.hub} into {folder} after {ATTEMPTS} attempts ({reason}): check "
        f"the network, or copy the files by hand and use the data source `mirror`"
    )


def _is_there(entry: Entry, folder: Path) -> bool:
    try:
        return all(shards(folder, split) for split in entry.splits)
    except InputError:
        return False


def _from_hub(entry: Entry, folder: Path) -> None:
    """Fetch every split at the pinned revision, however the hub lays them out."""
    if entry.revision is None:
        raise InputError(
            f"{entry.name} has no pinned revision in the table of datasets, so it is not "
            f"downloaded: put its files into a mirror under {entry.hub}, use the source `mirror`"
        )
    import datasets

    cache = folder / "cache"
    for split in entry.splits:
        rows = datasets.load_dataset(
            entry.hub, revision=entry.revision, split=split, cache_dir=str(cache)
        )
        with replacing(folder / f"{split}-00000-of-00001.parquet") as beside:
            rows.to_parquet(beside)
    shutil.rmtree(cache)


def _from_torchvision(entry: Entry, folder: Path) -> None:
    """Fetch EMNIST (the only such dataset) and lay it out as the hub would."""
    import torchvision

    for split in ("train", "test"):
        raw = torchvision.datasets.EMNIST(
            folder / "raw", entry.hub.split("/")[1], train=split == "train", download=True
        )
        # The published images are transposed; here they stand upright, as people read them.
        _write_split(raw.data.numpy().transpose(0, 2, 1), raw.targets.numpy(), entry, folder, split)


def _write_split(
    images: np.ndarray, labels: np.ndarray, entry: Entry, folder: Path, split: str
) -> None:
    """Write grey images uint8 [N, H, W] as one Parquet file of PNG cells."""
    cells = [{"bytes": _png(image)} for image in images]
    with replacing(folder / f"{split}-00000-of-00001.parquet") as beside:
        pq.write_table(pa.table({entry.column: cells, entry.label: labels}), beside)


def _png(image: np.ndarray) -> bytes:
    with io.BytesIO() as buffer:
        Image.fromarray(image).save(buffer, "PNG")
        return buffer.getvalue()


FETCH: dict[str, Callable[[Entry, Path], None]] = {
    "hub": _from_hub,
    "torchvision": _from_torchvision,
}
