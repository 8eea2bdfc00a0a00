"""The table of datasets, `config/datasets.yaml`: their sources and how they are identified."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, PositiveInt

from clustered_fl.errors import InputError
from clustered_fl.options import Strict, validated
from clustered_fl.yaml_files import read_yaml

Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class Rows(Strict):
    """Number of official rows per split; `test: 0` where the publisher made no test split."""

    train: int = Field(gt=0)
    test: int = Field(ge=0)


class Content(Strict):
    """Expected digests per split, as `clustered_fl.data.parquet.content_digest` computes them."""

    train: Sha256
    test: Sha256


class Entry(Strict):
    """One dataset.

    Attributes:
        name: its key in the file.
        hub: dataset id on the Hugging Face hub, and its folder inside a mirror.
        host: source of the download, "hub" or "torchvision".
        revision: commit on the hub; None if nothing can be pinned.
        licence: as stated by the publisher.
        citation: its publication.
        rows, classes: official numbers of rows, and class names in the order of the labels.
        column, label: columns of the images or texts and of the classes.
        owner: column with the writer of a row, None if there is none.
        shape: [C, H, W] of an image, which is square, or [T], the tokens of a text.
        content: digests of the complete data; if given, other data are refused.
        partial: digests of the known partial copies; if given, other partial copies are refused.
        stand_in: built-in generator of a substitute, None if there is none.
    """

    name: str
    hub: str = Field(pattern=r"^[\w.-]+/[\w.-]+$")
    host: Literal["hub", "torchvision"] = "hub"
    revision: Annotated[str, Field(pattern="^[0-9a-f]{40}$")] | None
    licence: str
    citation: str
    rows: Rows
    classes: Annotated[tuple[str, ...], Field(min_length=2)]
    column: str
    label: str
    owner: str | None = None
    shape: tuple[int, int, int] | tuple[int]
    content: Content | None = None
    partial: tuple[Content, ...] = ()
    stand_in: str | None

    @property
    def is_text(self) -> bool:
        """Whether the rows are token sequences rather than images."""
        return len(self.shape) == 1

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the required columns."""
        return (self.column, self.label, *([self.owner] if self.owner else []))

    @property
    def splits(self) -> tuple[str, ...]:
        """The publisher's splits."""
        return ("train", "test") if self.rows.test else ("train",)


class Composed(Strict):
    """A dataset composed of classes of others.

    Attributes:
        name: its key in the file.
        union: for each source dataset, "all" or a number of classes: the alphabetically first
            ones in the available copy.
    """

    name: str
    union: Annotated[dict[str, Literal["all"] | PositiveInt], Field(min_length=1)]


def read_registry(path: Path) -> dict[str, Entry | Composed]:
    """Read and check the table of datasets; InputError if it is missing or wrong."""
    table = read_yaml(path)
    if not isinstance(table, dict) or not all(isinstance(row, dict) for row in table.values()):
        raise InputError(f"{path} must map the name of every dataset to its properties")
    registry = {}
    for name, row in table.items():
        if not re.fullmatch(r"[a-z][a-z0-9_]{0,39}", str(name)):
            raise InputError(
                f"{path}: the name {str(name)[:60]!r}; allowed are small letters, digits and "
                "`_`, at most 40, the first one a letter"
            )
        kind = Composed if "union" in row else Entry
        registry[name] = validated(kind, f"{path}: {name}", row | {"name": name}, "key")
    for entry in registry.values():
        if isinstance(entry, Composed) and (problem := _misfit(entry.union, registry)):
            raise InputError(f"{path}: {entry.name}.union: {problem}")
    return registry


def _misfit(union: Iterable[str], registry: dict[str, Entry | Composed]) -> str:
    """Why datasets cannot be combined, as a sentence, else ""."""
    for name in union:
        part = registry.get(name)
        if not isinstance(part, Entry) or part.is_text or part.owner:
            return f"{name} must be a dataset of the table, images without owners"
    differ = len({registry[name].shape for name in union}) > 1
    return f"the images of {' and '.join(union)} differ in shape" if differ else ""


def find(registry: dict[str, Entry | Composed], name: str) -> Entry | Composed:
    """The entry called `name`; InputError with the known names if there is none."""
    if name not in registry:
        raise InputError(f"there is no dataset {name!r}; choose from {', '.join(sorted(registry))}")
    return registry[name]
