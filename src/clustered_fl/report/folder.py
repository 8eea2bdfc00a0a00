"""A folder that is replaced as a whole, so that nothing of its former contents stays behind."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from clustered_fl.errors import InputError
from clustered_fl.records import archive

# Every report has this file; a folder without it holds something else and is left alone, unless it
# is the archive of a paper that waits for its report.
MARK = "summary.json"


@contextmanager
def replacing_folder(path: Path) -> Iterator[Path]:
    """Yield an empty folder beside `path` that takes its place when the block succeeds.

    Raises:
        InputError: if `path` holds anything but a former report, or the system cannot write there.
    """
    names = {each.name for each in path.iterdir()} if path.is_dir() else set()
    if path.is_file() or (names - {archive.FILE} and MARK not in names):
        raise InputError(
            f"{path} holds something that is no report (no {MARK}) and would be deleted; "
            "choose an empty or a new folder"
        )
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        beside.mkdir(parents=True)
        yield beside
        shutil.rmtree(path, ignore_errors=True)
        beside.replace(path)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)
