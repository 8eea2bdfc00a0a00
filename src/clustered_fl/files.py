"""Files that are either whole or absent."""

import hashlib
import json
import os
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
