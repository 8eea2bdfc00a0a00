"""Interrupted runs continue where they were.

A checkpoint lies outside the declared outputs of a workflow, which are deleted when a job fails. It
is one file, replaced as a whole, and names the configuration and the code it belongs to, so that
another run never continues from it.
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


@contextmanager
def sole_owner(path: Path) -> Iterator[None]:
    """Hold the checkpoint's lock: two processes never work on the same run.

    Raises:
        InputError: if another process holds it, naming that process.
    """
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
    """Replace the checkpoint at `path`.

    Args:
        identity: digest of everything the run depends on.
        tensors: state on any device.
        content: the rest, as JSON.
    """
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
            return {name: file.get_tensor(name) for name in file.keys()}, json.loads(
                header["content"]
            )
    except (OSError, SafetensorError):
        return None
