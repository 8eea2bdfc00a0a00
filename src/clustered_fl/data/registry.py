"""The table of datasets, `config/datasets.yaml`: where each comes from and how to know it again."""

from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, PositiveInt, ValidationError

from clustered_fl.errors import InputError

Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Rows(_Strict):
    """Number of official rows per split; `test: 0` where the publisher made no test split."""

    train: int = Field(gt=0)
    test: int = Field(ge=0)


class Content(_Strict):
    """Expected digests per split, as `clustered_fl.data.parquet.content_digest` computes them."""

    train: Sha256
    test: Sha256


class Entry(_Strict):
    """One dataset.

    Attributes:
        name: its key in the file.
        hub: dataset id on the Hugging Face hub, and its folder inside a mirror.
        host: who serves the download, "hub" or "torchvision".
        revision: commit on the hub; None where nothing can be pinned.
        licence: as its publisher states it.
        citation: where it was published.
        rows: official number of rows.
        classes: official class names in the order of the labels.
        column: column of the images or texts.
        label: column of the classes.
        owner: column that names who wrote a row, None if the publisher does not tell.
        shape: [C, H, W] of an image, or [T], the tokens of a text.
        content: digests of the complete data; where given, nothing else is accepted.
        stand_in: built-in generator used in its place, None if there is none yet.
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
    stand_in: str | None

    @property
    def is_text(self) -> bool:
        """Whether the rows are token sequences rather than images."""
        return len(self.shape) == 1

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that a copy must have."""
        return (self.column, self.label, *([self.owner] if self.owner else []))

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits that the publisher made."""
        return ("train", "test") if self.rows.test else ("train",)


class Composed(_Strict):
    """A dataset put together from classes of others.

    Attributes:
        name: its key in the file.
        union: for every dataset that it is made of, "all" of its classes or how many: the first
            ones, alphabetically, of those that the copy at hand has.
    """

    name: str
    union: Annotated[dict[str, Literal["all"] | PositiveInt], Field(min_length=1)]


def read_registry(path: Path) -> dict[str, Entry | Composed]:
    """Read and check the table of datasets.

    Raises:
        InputError: if the file is missing, is not YAML, has an unknown, missing or wrong key, or
            composes a dataset of parts that do not fit together.
    """
    try:
        table = yaml.safe_load(path.read_text())
    except (OSError, yaml.YAMLError) as error:
        raise InputError(f"cannot read the table of datasets {path}: {error}") from error
    if not isinstance(table, dict) or not all(isinstance(row, dict) for row in table.values()):
        raise InputError(f"{path} must map the name of every dataset to its properties")
    registry = {name: _entry(name, properties, path) for name, properties in table.items()}
    problems = filter(None, (_misfit(entry, registry) for entry in registry.values()))
    for problem in problems:
        raise InputError(f"{path}: {problem}")
    return registry


def _misfit(entry: Entry | Composed, registry: dict[str, Entry | Composed]) -> str:
    """A sentence if a composed dataset cannot be put together, else ""."""
    if isinstance(entry, Entry):
        return ""
    parts = [registry.get(part) for part in entry.union]
    fit = [isinstance(part, Entry) and not part.is_text and not part.owner for part in parts]
    if not all(fit):
        wrong = list(entry.union)[fit.index(False)]
        return f"{entry.name}.union: {wrong} must be a dataset of the table, images without owners"
    if len({part.shape for part in parts}) > 1:
        return f"{entry.name}.union: the images of {' and '.join(entry.union)} differ in shape"
    return ""


def _entry(name: str, properties: dict, path: Path) -> Entry | Composed:
    kind = Composed if "union" in properties else Entry
    try:
        return kind(**(properties | {"name": name}))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in (name, *first["loc"]))
        allowed = ", ".join(key for key in kind.model_fields if key != "name")
        message = f"{path}: {where}: {first['msg'].lower()}; keys are {allowed}"
        raise InputError(message) from error


def find(registry: dict[str, Entry | Composed], name: str) -> Entry | Composed:
    """The entry called `name`.

    Raises:
        InputError: naming the datasets there are, if there is none of that name.
    """
    if name not in registry:
        raise InputError(f"there is no dataset {name!r}; choose from {', '.join(sorted(registry))}")
    return registry[name]
