"""Files and folders that are either whole or as they were."""

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from clustered_fl.errors import InputError


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path` and rename it to `path` when the block succeeds.

    A reader therefore never sees half a file, and a full disk or an interruption leaves what was
    there before.

    Raises: InputError if the system cannot write there (disk full, no permission).
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield beside
        beside.replace(path)
    except (OSError, SafetensorError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(
            f"cannot write {path}: {reason}; free space or choose another folder"
        ) from error
    finally:
        with suppress(OSError):
            beside.unlink(missing_ok=True)


@contextmanager
def replacing_folder(path: Path) -> Iterator[Path]:
    """Yield an empty folder beside `path` that takes its place when the block succeeds.

    Python has no call that exchanges two folders. The former one is set aside first, and `recover`
    puts it back if the process dies before the new one is in its place.

    Raises: InputError if the system cannot write there.
    """
    beside = path.with_name(f".{path.name}.part")
    try:
        recover(path)
        shutil.rmtree(beside, ignore_errors=True)
        beside.mkdir(parents=True)
        yield beside
        if path.exists():
            path.replace(_aside(path))
        beside.replace(path)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        recover(path)
        shutil.rmtree(beside, ignore_errors=True)


def recover(path: Path) -> None:
    """Put the folder `path` back if its replacement was interrupted, or delete what it replaced."""
    aside = _aside(path)
    # Snakemake makes the folders of its outputs, so that an empty one is none.
    if aside.is_dir() and not (path.is_dir() and any(path.iterdir())):
        aside.replace(path)
    shutil.rmtree(aside, ignore_errors=True)


def _aside(path: Path) -> Path:
    return path.with_name(f".{path.name}.former")


def write_json(path: Path, content: Any) -> None:
    """Write `content` as indented JSON, whole or not at all."""
    with replacing(path) as beside:
        beside.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n")


def read_json(path: Path) -> Any:
    """Read JSON, with one sentence instead of a traceback when it is absent or broken.

    Raises: InputError if the file is missing or is not JSON.
    """
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {path}: {error}") from error


def digest(content: Any) -> str:
    """16 hex digits of the SHA-256 of `content` as canonical JSON; key order is irrelevant."""
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]
