"""Interrupted runs continue where they were.

A checkpoint lies outside a workflow's declared outputs, which are deleted when a job fails.
"""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from clustered_fl.errors import InputError
from clustered_fl.files import replacing
from clustered_fl.models.numerics import NUMERICS

__numerics__ = NUMERICS


@contextmanager
def sole_owner(path: Path) -> Iterator[None]:
    """Hold the checkpoint's lock; an InputError names the process that already holds it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_suffix(".lock").open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            lock.seek(0)
            owner = lock.read().strip() or "unknown"
            raise InputError(
                f"this run is still being computed by process {owner}; wait for it or stop it"
            ) from error
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        yield


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
