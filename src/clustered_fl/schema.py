"""What a ledger may say: the keys of `config/papers/<paper>.yaml`, their types and meanings."""

import json
from typing import Any, Literal

from pydantic import BaseModel, Field
from pydantic.fields import FieldInfo

from clustered_fl.grounds import Contender, Ground
from clustered_fl.strict import Scale, Strict, Word

SCALES: tuple[Scale, ...] = ("demo", "desktop", "paper")
Grounds = list[str] | Literal["all"]
"""Names of grounds."""


class Sweep(Strict):
    """One run per value of one setting; the runs are called `<run>_<value>`."""

    setting: str = Field(description="dotted path into the run, e.g. `federation.samples`")
    values: dict[Scale, list[int | float]] = Field(description="values per scale")


class Configuration(Strict):
    """What is trained; a scale and a sweep may change it, and a change trains again."""

    dataset: str = Field(description="key of `config/datasets.yaml`")
    federation: dict[str, Any] = Field(description="kind and its settings")
    model: dict[str, Any] = Field(description="name and its settings")
    training: dict[str, int | float | Word | None] = Field(
        description="epochs, batch_size, lr, momentum, clip, proximal, optimiser, layers"
    )
    method: dict[str, Any] = Field(description="name and its settings")
    grouping: str | None = Field(
        default=None, description="name of a grouping, for methods that average by one"
    )
    rounds: int = Field(ge=1, description="communication rounds")
    evaluate_every: int = Field(default=5, ge=1, description="rounds between two tests")
    checkpoint_every: int = Field(default=10, ge=1, description="rounds between two checkpoints")
    keep_every: int = Field(
        default=0, ge=0, description="rounds between two models that the record keeps; 0: the last"
    )
    variant: Literal["paper", "code"] = Field(
        default="paper", description="the printed formula or what the authors' public code does"
    )


class Run(Configuration):
    """A training: federation x model x local training x method, for some seeds."""

    purpose: str = Field(description="what the run is for")
    expected: str = Field(description="expected number, from the paper where it gives one")
    minutes: dict[Scale, float] = Field(description="expected minutes per seed on one CPU core")
    memory_mb: int = Field(default=3000, ge=1, description="memory to reserve, at any scale")
    seeds: dict[Scale, list[int]] = Field(description="seeds per scale; none: not run there")
    scales: dict[Scale, dict[str, Any]] = Field(
        default={}, description="settings that differ at a scale, nested like the run"
    )
    sweep: Sweep | None = Field(default=None, description="one run per value of one setting")


class EncoderConfiguration(Strict):
    """What an encoder is and what it learns from; a scale may change it."""

    dataset: str = Field(description="key of `config/datasets.yaml`; need not be the clients' data")
    model: dict[str, Any] = Field(description="name and its settings")
    training: dict[str, int | float] = Field(
        description="epochs, batch_size, lr, halve_every of the training; samples, if not all"
    )


class Encoder(EncoderConfiguration):
    """An autoencoder that a server trains before it knows its clients; its seed is 0."""

    purpose: str = Field(description="what the encoder is for")
    expected: str = Field(description="expected number, from the paper where it gives one")
    minutes: dict[Scale, float] = Field(description="expected minutes on one CPU core")
    scales: dict[Scale, dict[str, Any]] = Field(
        default={}, description="settings that differ at a scale, nested like the encoder"
    )


class GroupingConfiguration(Strict):
    """Whose relatedness is found and how; a scale may change it."""

    dataset: str = Field(description="key of `config/datasets.yaml`")
    federation: dict[str, Any] = Field(description="kind and its settings, as of the runs with it")
    encoder: str | None = Field(default=None, description="name of an encoder; none: not needed")
    profiler: str | None = Field(
        default=None,
        description="name of a run whose network embeds the images, in place of an encoder",
    )
    method: dict[str, Any] = Field(description="name and its settings")
    variant: Literal["paper", "code"] = Field(
        default="paper", description="the printed formula or what the authors' public code does"
    )


class Grouping(GroupingConfiguration):
    """Who is related to whom, found once before training, for some seeds."""

    purpose: str = Field(description="what the grouping is for")
    expected: str = Field(description="expected number, from the paper where it gives one")
    minutes: dict[Scale, float] = Field(description="expected minutes per seed on one CPU core")
    seeds: dict[Scale, list[int]] = Field(description="seeds per scale; none: not found there")
    scales: dict[Scale, dict[str, Any]] = Field(
        default={}, description="settings that differ at a scale, nested like the grouping"
    )


class Study(Strict):
    """A computation without training: toy problems and numerical checks of theorems."""

    purpose: str = Field(description="what the study is for")
    function: str = Field(description="module.function below `clustered_fl.theory`")
    settings: dict[str, Any] = Field(default={}, description="arguments of the function")
    scales: dict[Scale, dict[str, Any]] = Field(
        default={}, description="arguments that differ at a scale"
    )


class Artefact(Strict):
    """One table or figure, made by a notebook from records and studies."""

    kind: Literal["figure", "table"] = Field(description="`figure` or `table`")
    title: str = Field(description="shown above it")
    caption: str = Field(description="what is seen and how it was made")
    published: str = Field(description="what the paper's item shows, with its numbers")
    where: str = Field(description="place in the paper")
    notebook: str = Field(description="path below `notebooks/`")
    runs: list[str] = Field(default=[], description="runs that the notebook reads")
    studies: list[str] = Field(default=[], description="studies that the notebook reads")
    groupings: list[str] = Field(default=[], description="groupings that the notebook reads")
    encoders: list[str] = Field(default=[], description="encoders that the notebook reads")
    grounds: Grounds = Field(
        default=[],
        description="grounds all of whose records the notebook reads, or `all`; it is told of them "
        "in the parameters `grounds`, `contenders` and `rows`",
    )
    measured: bool = Field(
        default=True, description="false: it is told of its grounds and reads no record of them"
    )
    parameters: dict[str, Any] = Field(
        default={}, description="further values of the notebook's parameters cell"
    )


class Claim(Strict):
    """One statement of the paper; its predicate has the same id in clustered_fl.claims."""

    artefact: str = Field(description="the table or figure that shows it")
    statement: str = Field(description="what the paper says, right or wrong")
    published: str = Field(description="the paper's number, or 'not stated'")
    where: str = Field(description="place in the paper")
    runs: list[str] = Field(default=[], description="runs that the predicate measures")
    studies: list[str] = Field(default=[], description="studies that the predicate reads")
    groupings: list[str] = Field(default=[], description="groupings that the predicate measures")
    full_size: bool = Field(
        default=False,
        description="whether it is about the size of numbers, so that a scale that changes a "
        "setting of what it measures gives no verdict",
    )
    grounds: Grounds = Field(
        default=[], description="grounds all of whose records the predicate measures, or `all`"
    )
    note: str = Field(default="", description="our one honest sentence about the verdict")


class Ledger(Strict):
    """Everything the project knows of one paper."""

    paper: str = Field(description="short name, as in the name of the file")
    title: str = Field(description="title of the paper")
    authors: str = Field(description="authors of the paper")
    versions: list[str] = Field(description="versions of the paper, the leading one first")
    contradictions: list[str] = Field(
        default=[],
        description="where the paper contradicts itself or its code, whatever we measure",
    )
    encoders: dict[str, Encoder] = Field(default={}, description="autoencoders, by name")
    groupings: dict[str, Grouping] = Field(
        default={}, description="relatedness found before training, by name"
    )
    runs: dict[str, Run] = Field(description="trainings, by name")
    grounds: dict[str, Ground] = Field(
        default={}, description="clients on whom every contender trains, by name"
    )
    contenders: dict[str, Contender] = Field(
        default={}, description="methods that train on every ground, by name"
    )
    studies: dict[str, Study] = Field(description="computations without training, by name")
    artefacts: dict[str, Artefact] = Field(description="tables and figures, by name of the target")
    claims: dict[str, Claim] = Field(description="statements of the paper, by id")

    @property
    def short(self) -> str:
        """What pages call it: a paper by its short name, what is no paper by its title."""
        return self.title if self.grounds else self.paper.upper()


def key_table(model: type[BaseModel]) -> str:
    """The keys of one part of the configuration as a Markdown table."""
    lines = ["| key | default | meaning |", "|---|---|---|"]
    for name, field in model.model_fields.items():
        lines.append(f"| `{name}` | {_default(field)} | {field.description} |")
    return "\n".join(lines)


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    if isinstance(field.default, BaseModel):
        return "its defaults"
    return "unset" if field.default is None else f"`{json.dumps(field.default)}`"
