"""The workflow's configuration, `config/config.yaml`: what is computed, from which data."""

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from clustered_fl.errors import InputError
from clustered_fl.grounds import Change, Contender, Ground, Needs, OneShot, Traffic, WarmUp
from clustered_fl.schema import (
    Artefact,
    Claim,
    Encoder,
    Grouping,
    Ledger,
    Run,
    Scale,
    Study,
    Sweep,
    key_table,
)

Source = Literal["builtin", "mirror", "download"]

INTRODUCTION = """\
What is computed: `config.yaml`. What there is to compute: one ledger per paper in `papers/`. Where
datasets come from: `datasets.yaml`, explained at its top. Unknown keys are refused by name.

This file is generated from `src/clustered_fl/settings.py` and `schema.py`, and a test compares:

    python -c "from clustered_fl.settings import readme; print(readme())" > config/README.md"""


class Settings(BaseModel):
    """Every key of `config/config.yaml`; each can be given with `--config key=value`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    scale: Scale = Field(
        default="demo",
        description="`demo` (built-in data, minutes), `desktop` (real data, reduced sizes, hours "
        "on 2 cores) or `paper` (the papers' own sizes, for a GPU)",
    )
    papers: list[Literal["cfl", "flt", "repa", "ground"]] = Field(
        default=["cfl", "flt", "repa", "ground"],
        min_length=1,
        description="papers to reproduce, and `ground`, which compares their methods on the same "
        "clients; each has a ledger in `config/papers/`",
    )
    source: Source | None = Field(
        default=None,
        description="where datasets come from; unset: `builtin` at scale demo, else `mirror` if a "
        "mirror is given, else `download`",
    )
    mirror: str | None = Field(
        default=None,
        description="folder with datasets as `hf download --repo-type dataset` leaves them: "
        "`<mirror>/<namespace>/<name>/*.parquet`",
    )
    device: Literal["auto", "cpu", "cuda"] = Field(
        default="auto", description="where training runs; `auto` takes a CUDA GPU if there is one"
    )
    path: Literal["auto", "compiled", "in_place", "sequential", "stacked"] = Field(
        default="auto",
        description="how clients are trained: the ways agree to rounding and differ in speed; "
        "`auto` measures once per kind of run which is fastest (`src/clustered_fl/engine`)",
    )
    seeds: int | None = Field(
        default=None, ge=1, description="use at most so many of the ledger's seeds; unset: all"
    )

    @property
    def data_source(self) -> Source:
        """The source that is meant when none is given."""
        if self.source is not None:
            return self.source
        if self.scale == "demo":
            return "builtin"
        return "mirror" if self.mirror else "download"


def read_settings(content: dict) -> Settings:
    """Check the configuration of a workflow run.

    Raises:
        InputError: if a key or a value is not allowed, or the mirror is missing.
    """
    try:
        settings = Settings.model_validate(content)
    except ValidationError as error:
        raise InputError(_sentence(error)) from error
    if settings.data_source == "mirror":
        if not settings.mirror:
            raise InputError("source=mirror needs mirror=<folder>")
        if not Path(settings.mirror).is_dir():
            raise InputError(
                f"the mirror folder {settings.mirror} does not exist; give mirror=<folder>"
            )
    return settings


def _sentence(error: ValidationError) -> str:
    problem = error.errors()[0]
    key = str(problem["loc"][0])
    if problem["type"] == "extra_forbidden":
        return f"unknown configuration key {key!r}; allowed are {', '.join(Settings.model_fields)}"
    return f"configuration key {key}: {problem['input']!r} is not allowed: {problem['msg']}"


def readme() -> str:
    """The text of `config/README.md`: every key of the configuration and of the ledgers."""
    parts = {
        "`config.yaml`": Settings,
        "`papers/<paper>.yaml`": Ledger,
        "An entry of `encoders`": Encoder,
        "An entry of `groupings`": Grouping,
        "An entry of `runs`": Run,
        "The key `sweep` of a run": Sweep,
        "An entry of `grounds`": Ground,
        "The key `warm_up` of a ground": WarmUp,
        "An entry of `contenders`": Contender,
        "The key `grouping` of a contender": OneShot,
        "The key `needs` of a contender": Needs,
        "The key `traffic` of a contender": Traffic,
        "An entry of `changes` of a contender": Change,
        "An entry of `studies`": Study,
        "An entry of `artefacts`": Artefact,
        "An entry of `claims`": Claim,
    }
    tables = [
        f"## {title}\n\n{_about(model)}\n\n{key_table(model)}" for title, model in parts.items()
    ]
    return "\n\n".join(["# Configuration", INTRODUCTION, *tables])


def _about(model: type[BaseModel]) -> str:
    return (model.__doc__ or "").split("\n")[0]
