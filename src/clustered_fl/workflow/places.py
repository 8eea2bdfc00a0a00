"""Where a workflow finds what it consists of, and where it leaves what it makes."""

from dataclasses import dataclass
from pathlib import Path

import clustered_fl

LEDGERS = "config/papers"


@dataclass(frozen=True)
class Places:
    """The folders of a workflow that may run outside its repository.

    Attributes:
        repository: the project's folder; "" if that is the working directory.
        prefix: what Snakemake puts before all that a module with `prefix:` makes. Rules name files
            without it, and everything that reads or writes them in Python names them with it.
    """

    repository: str = ""
    prefix: str = ""

    def found(self, name: str) -> str:
        """A file or folder of the project: the working directory's own before the repository's.

        Absolute outside the repository, because Snakemake puts the prefix before relative paths.
        """
        if not self.repository:
            return name
        own = Path(name).absolute()
        return str(own if own.exists() else Path(self.repository, name))

    def made(self, name: str) -> str:
        """Something that the workflow makes."""
        return f"{self.prefix}{name}"

    def published(self, scale: str, paper: str) -> Path:
        """Folder of a paper's published results: those made here before the repository's."""
        name = f"figures/{scale}/{paper}"
        own = Path(self.made(name)).absolute()
        return own if self.prefix and own.exists() else Path(self.found(name))


HERE = Places()
"""Of a workflow in its repository."""


def places(prefix: str = "") -> Places:
    """The places of a workflow in this working directory; the package is in its repository."""
    repository = Path(clustered_fl.__file__).parents[2]
    if not prefix and repository == Path.cwd():
        return HERE
    return Places(str(repository), prefix)
