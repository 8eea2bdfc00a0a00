"""Interrupted runs continue where they were.

A checkpoint lies outside a workflow's declared outputs, which are deleted when a job fails.
"""

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from socket import gethostname
from threading import Event, Thread
from typing import Any, TextIO

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from clustered_fl.errors import InputError
from clustered_fl.files import replacing
from clustered_fl.models.numerics import NUMERICS

__numerics__ = NUMERICS


HEARTBEAT, PATIENCE = 60, 3
"""Seconds between two signs of life in a lock, and how many of them are waited for."""


@contextmanager
def sole_owner(path: Path) -> Iterator[None]:
    """Hold the checkpoint's lock, also against other machines that share its file system.

    The system's lock is enough on one machine, and on most network file systems; it ends with its
    process, however that ends. Some keep it to each machine. The owner therefore also writes its
    name into the lock and touches it every minute. If that is another machine's, three minutes
    without a touch decide that the owner is gone: a job that a cluster has killed and starts again
    elsewhere must not wait for a person. The clocks of the machines are not compared.

    Raises: InputError naming the process and the machine that compute the run.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    place, ended = path.with_suffix(".lock"), Event()
    with place.open("a+") as lock:
        _take(lock, place)
        lock.truncate(0)
        lock.write(f"{os.getpid()} on {gethostname()}")
        lock.flush()
        living = Thread(target=_live, args=(lock.fileno(), ended), daemon=True)
        living.start()
        try:
            yield
        finally:
            ended.set()
            living.join()
            lock.truncate(0)


def _take(lock: TextIO, place: Path) -> None:
    """Wait until a lock is ours, or raise InputError if it has a living owner."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        local = True
    except BlockingIOError as error:
        raise InputError(_refusal(place)) from error
    except OSError:  # a file system without locks
        local = False
    lock.seek(0)
    owner = lock.read()
    if not owner or (local and owner.endswith(f" on {gethostname()}")):
        return
    last = os.fstat(lock.fileno()).st_mtime_ns
    for _ in range(PATIENCE):
        time.sleep(HEARTBEAT)
        if os.fstat(lock.fileno()).st_mtime_ns != last:
            raise InputError(_refusal(place))


def _refusal(place: Path) -> str:
    owner = place.read_text().strip() or "unknown"
    return (
        f"this run is still being computed by process {owner}; wait for it or stop it, "
        f"or delete {place} if there is no such process"
    )


def _live(lock: int, ended: Event) -> None:
    with suppress(OSError):
        while not ended.wait(HEARTBEAT):
            os.utime(lock)


def save(path: Path, identity: str, tensors: dict[str, Tensor], content: dict[str, Any]) -> None:
    """Replace the checkpoint at `path`; `identity` is a digest of everything the run depends on."""
    header = {"identity": identity, "content": json.dumps(content)}
    stored = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    with replacing(path) as beside:
        save_file(stored, beside, header)


def load(path: Path, identity: str) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
    """The checkpoint at `path`, or None if there is none of this identity that can be read."""
    try:
        with safe_open(path, framework="torch") as file:
            header = file.metadata() or {}
            if header.get("identity") != identity:
                return None
            tensors = {name: file.get_tensor(name) for name in file.keys()}
            return tensors, json.loads(header["content"])
    except (OSError, SafetensorError):
        return None
