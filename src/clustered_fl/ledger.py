"""The ledger of a paper: its runs, studies, artefacts and claims, checked when read.

One file per paper, `config/papers/<paper>.yaml`. Adding a run, a seed, an artefact or a claim is an
edit of that file; unknown keys and dangling names are refused by name.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.fields import FieldInfo

from clustered_fl.errors import InputError

Scale = Literal["demo", "desktop", "paper"]
SCALES: tuple[Scale, ...] = ("demo", "desktop", "paper")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Sweep(_Strict):
    """One run per value of one setting; the runs are called `<run>_<value>`."""

    setting: str = Field(description="dotted path into the run, e.g. `federation.samples`")
    values: dict[Scale, list[int | float]] = Field(description="values per scale")


class Configuration(_Strict):
    """What is trained; a scale and a sweep may change it, and a change trains again."""

    dataset: str = Field(description="key of `config/datasets.yaml`")
    federation: dict[str, Any] = Field(description="kind and its settings")
    model: dict[str, Any] = Field(description="name and its settings")
    training: dict[str, int | float | None] = Field(
        description="epochs, batch_size, lr, momentum, clip, proximal of local training"
    )
    method: dict[str, Any] = Field(description="name and its settings")
    rounds: int = Field(ge=1, description="communication rounds")
    evaluate_every: int = Field(default=5, ge=1, description="rounds between two tests")
    checkpoint_every: int = Field(default=10, ge=1, description="rounds between two checkpoints")
    variant: Literal["paper", "code"] = Field(
        default="paper", description="the printed formula or what the authors' public code does"
    )


class Run(Configuration):
    """A training: federation x model x local training x method, for some seeds."""

    purpose: str = Field(description="what the run is for")
    expected: str = Field(description="expected number, from the paper where it gives one")
    minutes: dict[Scale, float] = Field(description="expected minutes per seed on one CPU core")
    seeds: dict[Scale, list[int]] = Field(description="seeds per scale; none: not run there")
    scales: dict[Scale, dict[str, Any]] = Field(
        default={}, description="settings that differ at a scale, nested like the run"
    )
    sweep: Sweep | None = Field(default=None, description="one run per value of one setting")


class Study(_Strict):
    """A computation without training: toy problems and numerical checks of theorems."""

    purpose: str = Field(description="what the study is for")
    function: str = Field(description="module.function below `clustered_fl.theory`")
    settings: dict[str, Any] = Field(default={}, description="arguments of the function")
    scales: dict[Scale, dict[str, Any]] = Field(
        default={}, description="arguments that differ at a scale"
    )


class Artefact(_Strict):
    """One table or figure, made by a notebook from records and studies."""

    kind: Literal["figure", "table"] = Field(description="`figure` or `table`")
    title: str = Field(description="shown above it")
    caption: str = Field(description="what is seen and how it was made")
    published: str = Field(description="what the paper's item shows, with its numbers")
    where: str = Field(description="place in the paper")
    notebook: str = Field(description="path below `notebooks/`")
    runs: list[str] = Field(default=[], description="runs that the notebook reads")
    studies: list[str] = Field(default=[], description="studies that the notebook reads")
    parameters: dict[str, Any] = Field(
        default={}, description="further values of the notebook's parameters cell"
    )


class Claim(_Strict):
    """One statement of the paper; its predicate has the same id in clustered_fl.claims."""

    artefact: str = Field(description="the table or figure that shows it")
    statement: str = Field(description="what the paper says, right or wrong")
    published: str = Field(description="the paper's number, or 'not stated'")
    where: str = Field(description="place in the paper")
    runs: list[str] = Field(default=[], description="runs that the predicate measures")
    studies: list[str] = Field(default=[], description="studies that the predicate reads")
    note: str = Field(default="", description="our one honest sentence about the verdict")


class Ledger(_Strict):
    """Everything the project knows of one paper."""

    paper: str = Field(description="short name, as in the name of the file")
    title: str = Field(description="title of the paper")
    authors: str = Field(description="authors of the paper")
    versions: list[str] = Field(description="versions of the paper, the leading one first")
    contradictions: list[str] = Field(
        default=[],
        description="where the paper contradicts itself or its code, whatever we measure",
    )
    runs: dict[str, Run] = Field(description="trainings, by name")
    studies: dict[str, Study] = Field(description="computations without training, by name")
    artefacts: dict[str, Artefact] = Field(description="tables and figures, by name of the target")
    claims: dict[str, Claim] = Field(description="statements of the paper, by id")


class _Loader(yaml.SafeLoader):
    """Reads 1e-3 as the number it is; in YAML 1.1 a number with an exponent needs a point."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?\d+[eE][-+]?\d+$"), list("+-0123456789")
)


def key_table(model: type[BaseModel]) -> str:
    """The keys of one part of the configuration as a Markdown table."""
    lines = ["| key | default | meaning |", "|---|---|---|"]
    for name, field in model.model_fields.items():
        lines.append(f"| `{name}` | {_default(field)} | {field.description} |")
    return "\n".join(lines)


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    return "unset" if field.default is None else f"`{json.dumps(field.default)}`"


def load_ledger(path: Path) -> Ledger:
    """Read and check a ledger.

    Raises:
        InputError: if it cannot be read, has an unknown key or names something that is not there.
    """
    try:
        loader = _Loader(path.read_text())
        node = loader.get_single_node()
        _check_unique(path, node)
        content = loader.construct_document(node) if node else None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InputError(f"cannot read {path}: {' '.join(str(error).split())}") from error
    try:
        ledger = Ledger.model_validate(content)
    except ValidationError as error:
        raise InputError(_first_problem(str(path), error, Ledger)) from error
    _check_names(path, ledger)
    _check_changes(path, ledger)
    return ledger


def _check_unique(path: Path, node: yaml.Node | None) -> None:
    """In YAML a key given twice silently means the second: a pasted run would hide another."""
    if not isinstance(node, yaml.MappingNode):
        return
    for key, count in Counter(name.value for name, _ in node.value).items():
        if count > 1:
            line = node.start_mark.line + 1
            raise InputError(
                f"{path}: {key!r} is there twice in the part that begins in line {line}"
            )
    for _, value in node.value:
        _check_unique(path, value)


def _first_problem(where: str, error: ValidationError, model: type[BaseModel]) -> str:
    problem = error.errors()[0]
    place = ".".join(str(part) for part in problem["loc"])
    if problem["type"] == "extra_forbidden":
        return f"{where}: unknown key {place!r}; {_allowed(problem['loc'], model)}"
    if problem["type"] == "missing":
        return f"{where}: {place} is missing"
    return f"{where}: {place or 'all of it'}: {problem['msg']} (found {problem['input']!r})"


def _allowed(location: tuple[int | str, ...], model: type[BaseModel]) -> str:
    parts = {"runs": Run, "studies": Study, "artefacts": Artefact, "claims": Claim, "sweep": Sweep}
    # Every other part of a location is a name that somebody gave.
    for part in location[:-1:2]:
        model = parts.get(str(part), model)
    return f"allowed are {', '.join(model.model_fields)}"


def _check_names(path: Path, ledger: Ledger) -> None:
    """Every run, study and artefact that something refers to must exist."""
    for user, entry in [*ledger.artefacts.items(), *ledger.claims.items()]:
        for kind, one in (("runs", "run"), ("studies", "study")):
            missing = [name for name in getattr(entry, kind) if name not in getattr(ledger, kind)]
            if missing:
                raise InputError(f"{path}: {user} names {one} {missing[0]!r}, which is not there")
    for user, claim in ledger.claims.items():
        if claim.artefact not in ledger.artefacts:
            raise InputError(
                f"{path}: {user} names artefact {claim.artefact!r}, which is not there"
            )


def _check_changes(path: Path, ledger: Ledger) -> None:
    """What a scale or a sweep makes of a run must be a run again."""
    for scale in SCALES:
        for name, run in ledger.runs.items():
            for member, config in _configurations(name, run, scale):
                try:
                    Configuration.model_validate(config)
                except ValidationError as error:
                    where = f"{path}: run {member} at scale {scale}"
                    raise InputError(_first_problem(where, error, Configuration)) from error


def resolved_runs(ledger: Ledger, scale: Scale) -> dict[str, dict[str, Any]]:
    """Every run of the ledger at one scale, sweeps expanded, settings merged.

    Returns:
        Run name -> configuration without the seed, plus "seeds" and "family" (the ledger's name).
    """
    found = {}
    for name, run in ledger.runs.items():
        for member, changed in _configurations(name, run, scale):
            config = Configuration.model_validate(changed).model_dump()
            config |= {"run": member, "paper": ledger.paper, "scale": scale}
            found[member] = {"config": config, "seeds": run.seeds.get(scale, []), "family": name}
    return found


def _configurations(name: str, run: Run, scale: Scale) -> Iterator[tuple[str, dict[str, Any]]]:
    config = _merged(
        run.model_dump(include=set(Configuration.model_fields)), run.scales.get(scale, {})
    )
    if run.sweep is None:
        yield name, config
        return
    for value in run.sweep.values.get(scale, []):
        nested: Any = value
        for key in reversed(run.sweep.setting.split(".")):
            nested = {key: nested}
        yield f"{name}_{value}", _merged(config, nested)


def _merged(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """`base` with `changes` put in, nested dictionaries merged key by key."""
    merged = dict(base)
    for key, value in changes.items():
        old = merged.get(key)
        both = isinstance(old, dict) and isinstance(value, dict)
        merged[key] = _merged(old, value) if both else value
    return merged
