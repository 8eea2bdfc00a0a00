"""Downloads of datasets in the layout of a mirror, so that one reader serves both."""

import io
import shutil
import socket
import time
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import getproxies

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from clustered_fl.data.parquet import shards
from clustered_fl.data.registry import Entry
from clustered_fl.errors import InputError
from clustered_fl.files import replacing

# Downloaded data are identified by digest, so the way they are fetched changes no result.
__numerics__ = "content"

ATTEMPTS = 3
PATIENCE = 10
"""Seconds to wait for a host's answer."""
_FILE = "{}-00000-of-00001.parquet"


def download(entry: Entry, folder: Path) -> None:
    """Fetch all splits, unless they are there; hosts fail often, hence `ATTEMPTS`.

    Raises: InputError with the last reason if the dataset cannot be fetched.
    """
    with suppress(InputError):
        if all(shards(folder, split) for split in entry.splits):
            return
    for attempt in range(ATTEMPTS):
        try:
            FETCH[entry.host](entry, folder)
            return
        except InputError:
            raise
        # Three libraries raise their own network errors here; each means "try again".
        except Exception as error:
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
        if attempt + 1 < ATTEMPTS:
            time.sleep(2**attempt)
    raise InputError(
        f"cannot download {entry.hub} into {folder} after {ATTEMPTS} attempts ({reason}): check "
        f"the network, or copy the files by hand and use the data source `mirror`"
    )


def require_network(entry: Entry, address: str) -> None:
    """Refuse at once without a network; the libraries would retry for more than a minute.

    The check is skipped behind a proxy, which may be the only way to the host.

    Raises: InputError if the host cannot be reached.
    """
    if getproxies():
        return
    parts = urlsplit(address)
    host, port = parts.hostname or address, parts.port or (80 if parts.scheme == "http" else 443)
    try:
        socket.create_connection((host, port), PATIENCE).close()
    except OSError as error:
        raise InputError(
            f"cannot download {entry.hub}, because {host} cannot be reached ({error}): connect to "
            "the network, or copy the files by hand and give mirror=<folder>, or source=builtin "
            "for stand-ins"
        ) from error


def _from_hub(entry: Entry, folder: Path) -> None:
    """Fetch every split at the pinned revision, whatever the files are called on the hub."""
    if entry.revision is None:
        raise InputError(
            f"{entry.name} has no pinned revision in the table of datasets, so it is not "
            f"downloaded: put its files into a mirror under {entry.hub}, use the source `mirror`"
        )
    import datasets
    from huggingface_hub.constants import ENDPOINT

    require_network(entry, ENDPOINT)
    cache = folder / "cache"
    pinned = {"revision": entry.revision, "cache_dir": str(cache)}
    for split in entry.splits:
        rows = datasets.load_dataset(entry.hub, split=split, **pinned)
        with replacing(folder / _FILE.format(split)) as beside:
            rows.to_parquet(beside)
    shutil.rmtree(cache)


def _from_torchvision(entry: Entry, folder: Path) -> None:
    """Fetch EMNIST (the only such dataset) and store it like the hub, in PNG cells."""
    import torchvision

    require_network(entry, torchvision.datasets.EMNIST.url)
    name = entry.hub.split("/")[1]
    for split in ("train", "test"):
        train = split == "train"
        raw = torchvision.datasets.EMNIST(folder / "raw", name, train=train, download=True)
        # The published images are transposed; these are upright.
        cells = [{"bytes": _png(image)} for image in raw.data.numpy().transpose(0, 2, 1)]
        table = pa.table({entry.column: cells, entry.label: raw.targets.numpy()})
        with replacing(folder / _FILE.format(split)) as beside:
            pq.write_table(table, beside)
    shutil.rmtree(folder / "raw")


def _png(image: np.ndarray) -> bytes:
    with io.BytesIO() as buffer:
        Image.fromarray(image).save(buffer, "PNG")
        return buffer.getvalue()


FETCH = {"hub": _from_hub, "torchvision": _from_torchvision}
