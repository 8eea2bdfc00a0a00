"""The schema of ledgers: keys of `config/papers/<paper>.yaml`, their types and meanings."""

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from clustered_fl.errors import InputError
from clustered_fl.options import SEEDS, Strict

Scale = Literal["demo", "desktop", "paper"]
SCALES: tuple[Scale, ...] = ("demo", "desktop", "paper")
Word = Literal["sgd", "adam", "all", "last"]
"""Text values in the settings of local training."""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,79}")
RULES = (
    *("dataset", "drift", "partition", "encoder", "grouping", "train", "figure", "table"),
    *("verdicts", "test_results", "report_site", "publish", "archive", "pages", "all", "default"),
    *("restore_encoder", "restore_grouping", "restore_run"),
)
RESERVED = frozenset((*RULES, "none"))
"""Names that targets and records cannot have: names of rules, and "none"."""


def allowed_name(name: str) -> str:
    """The name, if it is allowed in file names, targets and links; else InputError."""
    if not _NAME.fullmatch(name):
        raise InputError(
            f"the name {name[:60]!r}; allowed are letters, digits, `_` and `-`, at most 80, the "
            "first one a letter"
        )
    return name


def _distinct(values: list[Any]) -> list[Any]:
    if len(set(values)) < len(values):
        twice = next(value for value in values if values.count(value) > 1)
        raise InputError(f"{twice!r} is there twice; allowed is each once")
    return values


Name = Annotated[str, AfterValidator(allowed_name)]
"""A name that is used in file names, targets and links."""
Seed = Annotated[int, Field(ge=0, lt=SEEDS)]
Seeds = Annotated[list[Seed], AfterValidator(_distinct)]
Minutes = dict[Scale, Annotated[float, Field(ge=0)]]
Notebook = Annotated[str, Field(pattern=r"^(\w[\w.-]*/)*\w[\w.-]*\.ipynb$")]


class Sweep(Strict):
    """One run per value of a setting; the runs are called `<run>_<value>`."""

    setting: str = Field(description="dotted path into the run, e.g. `federation.samples`")
    values: dict[Scale, Annotated[list[int | float], AfterValidator(_distinct)]] = Field(
        description="values per scale"
    )


class Configuration(Strict):
    """Configuration of a training; a scale or sweep may change it, and a change retrains."""

    dataset: str = Field(description="key of `config/datasets.yaml`")
    federation: dict[str, Any] = Field(description="kind and its settings")
    model: dict[str, Any] = Field(description="name and its settings")
    training: dict[str, int | float | Word | None] = Field(
        description="epochs, batch_size, lr, decay, momentum, clip, proximal, optimiser, layers"
    )
    method: dict[str, Any] = Field(description="name and its settings")
    grouping: str | None = Field(
        default=None, description="name of a grouping, for methods that average by one"
    )
    rounds: int = Field(ge=1, description="communication rounds")
    evaluate_every: int = Field(default=5, ge=1, description="rounds between two tests")
    keep_every: int = Field(
        default=0, ge=0, description="rounds between two models that the record keeps; 0: the last"
    )
    variant: Literal["paper", "code"] = Field(
        default="paper",
        description="the printed text with its errors corrected, or what the authors' public code "
        "does",
    )


class Computed(Strict):
    """Keys of every run, grouping and encoder."""

    purpose: str = Field(description="what it is for")
    expected: str = Field(
        default="", description="expected outcome, where no table or claim has it"
    )
    minutes: Minutes = Field(description="expected minutes per seed on one CPU core")
    scales: dict[Scale, dict[str, Any]] = Field(
        default={}, description="settings that differ at a scale, nested like the entry"
    )


class Run(Computed, Configuration):
    """A training: federation, model, local training and method, for some seeds."""

    memory_mb: int = Field(default=3000, ge=1, description="memory to reserve, at any scale")
    seeds: dict[Scale, Seeds] = Field(description="seeds per scale; none: not run there")
    sweep: Sweep | None = Field(default=None, description="one run per value of one setting")


class EncoderConfiguration(Strict):
    """Configuration of an encoder; a scale may change it."""

    dataset: str = Field(description="key of `config/datasets.yaml`; need not be the clients' data")
    model: dict[str, Any] = Field(description="name and its settings")
    training: dict[str, int | float] = Field(
        description="epochs, batch_size, lr, halve_every of the training; samples, if not all"
    )


class Encoder(Computed, EncoderConfiguration):
    """An autoencoder that a server trains before it knows its clients; its seed is 0."""


class GroupingConfiguration(Strict):
    """Configuration of a grouping; a scale may change it."""

    dataset: str = Field(description="key of `config/datasets.yaml`")
    federation: dict[str, Any] = Field(description="kind and its settings, as in its runs")
    encoder: str | None = Field(default=None, description="name of an encoder; none: not needed")
    profiler: str | None = Field(
        default=None,
        description="name of a run whose network embeds the images, in place of an encoder",
    )
    method: dict[str, Any] = Field(description="name and its settings")
    variant: Literal["paper", "code"] = Field(
        default="paper",
        description="the printed text with its errors corrected, or what the authors' public code "
        "does",
    )


class Grouping(Computed, GroupingConfiguration):
    """A grouping: related clients, found once before training, for some seeds."""

    memory_mb: int = Field(default=4000, ge=1, description="memory to reserve, at any scale")
    seeds: dict[Scale, Seeds] = Field(description="seeds per scale; none: not computed there")
    signatures: bool = Field(
        default=False,
        description="whether a figure shows what clients sent, which is then published",
    )
    cosines: bool = Field(
        default=False,
        description="whether a figure or claim reads the cosines of pairs of clients, which are "
        "then published",
    )


class Study(Strict):
    """A computation without training: toy problems and numerical checks of theorems."""

    purpose: str = Field(description="what the study is for")
    function: str = Field(description="paper.module.function below `clustered_fl.theory`")
    settings: dict[str, Any] = Field(default={}, description="arguments of the function")
    scales: dict[Scale, dict[str, Any]] = Field(
        default={}, description="arguments that differ at a scale"
    )
    seeds: dict[Scale, Seeds] = Field(
        default={}, description="seeds of its random draws per scale; none: 0"
    )

    def seeds_at(self, scale: Scale) -> list[int]:
        """Seeds at a scale."""
        return self.seeds.get(scale, [0])

    def settings_at(self, scale: Scale) -> dict[str, Any]:
        """Arguments of the function at a scale."""
        return self.settings | self.scales.get(scale, {})


class Selection(Strict):
    """Cells of a table that an artefact shows."""

    table: str = Field(description="name of the table")
    columns: list[str] = Field(default=[], description="of the table; none: all")
    rows: list[str] = Field(default=[], description="of the table; none: all that are shown")
    reads: list[Literal["runs", "groupings", "networks"]] = Field(
        default=["runs", "groupings", "networks"],
        description="records of these cells that the notebook reads; networks: encoders and "
        "profilers of the groupings",
    )


class Artefact(Strict):
    """One table or figure, made by a notebook from records and studies."""

    kind: Literal["figure", "table"] = Field(description="`figure` or `table`")
    title: str = Field(description="shown above it")
    caption: str = Field(description="what is seen and how it was made")
    published: str = Field(description="what the paper's item shows, with its numbers")
    where: str = Field(description="place in the paper")
    notebook: Notebook = Field(description="path below `notebooks/`")
    runs: list[str] = Field(default=[], description="runs that the notebook reads")
    studies: list[str] = Field(default=[], description="studies that the notebook reads")
    groupings: list[str] = Field(default=[], description="groupings that the notebook reads")
    encoders: list[str] = Field(default=[], description="encoders that the notebook reads")
    cells: Selection | None = Field(
        default=None,
        description="cells of a table that it shows; the notebook reads them from its "
        "parameters `columns`, `rows` and `cells`",
    )
    in_part: bool = Field(
        default=False,
        description="whether `finished=true` makes it although some of its inputs are unfinished; "
        "its notebook must then mark them, for example with dashes",
    )
    parameters: dict[str, Any] = Field(
        default={}, description="further values of the notebook's parameters cell"
    )


class Claim(Strict):
    """One statement of the paper, with the measurement that decides it."""

    artefact: str = Field(description="the table or figure that shows it")
    kind: Literal["paper", "theory", "code", "ours"] = Field(
        description="`paper`: what the authors state; `theory`: a numerical check of a theorem; "
        "`code`: what the authors' public code does; `ours`: a question of our own"
    )
    statement: str = Field(description="what the paper says, right or wrong")
    published: str = Field(
        default="", description="the paper's number; none: as the table of its runs has it"
    )
    where: str = Field(description="place in the paper")
    measure: dict[str, Any] = Field(
        description="name and arguments of a function of `clustered_fl.claims`: `lead` is one of "
        "`measures`, `cfl.over_fedavg` one of `cfl`; `column.row` is a cell, `*` any"
    )
    holds_if: dict[str, str] = Field(
        min_length=1,
        description='measured number -> bound, such as `">= 0.15 and <= 0.3"`; all must hold',
    )
    unstated: dict[str, dict[str, dict[str, Any]]] = Field(
        default={},
        description="setting that the paper does not state -> value -> changed arguments of the "
        "measure, or `rows`: row of a table -> the row that replaces it in all arguments; the "
        "verdict covers all values",
    )
    any_size: str = Field(
        default="",
        description="why the claim is judged although the scale changes settings of what it "
        "measures; empty: it is REDUCED",
    )
    by_construction: str = Field(
        default="", description="why it cannot fail; if it holds, it is counted separately"
    )
    note: str = Field(default="", description="our comment on the verdict")
