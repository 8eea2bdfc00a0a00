"""Folders of a workflow's own files and of its outputs."""

from dataclasses import dataclass
from pathlib import Path

import clustered_fl

LEDGERS = "config/papers"


@dataclass(frozen=True)
class Places:
    """Folders of a workflow that may run outside its repository.

    Attributes:
        repository: the project's folder; "" if that is the working directory.
        prefix: prefix that Snakemake adds to all outputs of a module with `prefix:`. Rules name
            files without it; Python code that reads or writes them adds it.
    """

    repository: str = ""
    prefix: str = ""

    def found(self, name: str) -> str:
        """Path of a project file or folder, preferably in the working directory.

        Absolute outside the repository, because Snakemake adds the prefix to relative paths.
        """
        if not self.repository:
            return name
        own = Path(name).absolute()
        return str(own if own.exists() else Path(self.repository, name))

    def templates(self) -> list[str]:
        """Paths of the templates of the report's pages."""
        return sorted(map(str, Path(self.found("src/clustered_fl/report/templates")).iterdir()))

    def made(self, name: str) -> str:
        """Path of an output of the workflow."""
        return f"{self.prefix}{name}"

    def published(self, scale: str, paper: str) -> Path:
        """Folder of a paper's published results, preferably those published here."""
        name = f"figures/{scale}/{paper}"
        own = Path(self.made(name)).absolute()
        return own if self.prefix and own.exists() else Path(self.found(name))


HERE = Places()
"""Places of a workflow that runs in its repository."""


def places(prefix: str = "") -> Places:
    """The places of a workflow in this working directory."""
    repository = Path(clustered_fl.__file__).parents[2]
    if not prefix and repository == Path.cwd():
        return HERE
    return Places(str(repository), prefix)
