"""Folders of reports, which are replaced as a whole, so that nothing stale stays behind."""

from pathlib import Path

from clustered_fl.errors import InputError
from clustered_fl.records import archive

# Every report has this file; a folder without it holds something else and is left alone, unless it
# is the archive of a paper that waits for its report.
MARK = "summary.json"


def require_report(path: Path) -> None:
    """Refuse to replace a folder that holds anything but a former report.

    Raises: InputError naming it.
    """
    names = {each.name for each in path.iterdir()} if path.is_dir() else set()
    if path.is_file() or (names - {archive.FILE} and MARK not in names):
        raise InputError(
            f"{path} holds something that is no report (no {MARK}) and would be deleted; "
            "choose an empty or a new folder"
        )
