"""The ledger of a paper: its runs, groupings, studies, artefacts and claims, checked when read.

One file per paper, `config/papers/<paper>.yaml`. Adding a run, a seed, an artefact or a claim is an
edit of that file; unknown keys and dangling names are refused by name.
"""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

from clustered_fl.errors import InputError
from clustered_fl.grounds import Change, Contender, Ground, Needs, OneShot, Traffic, WarmUp
from clustered_fl.models import RECONSTRUCTING_MODELS
from clustered_fl.same_ground import expanded
from clustered_fl.schema import (
    SCALES,
    Artefact,
    Claim,
    Configuration,
    Encoder,
    EncoderConfiguration,
    Grouping,
    GroupingConfiguration,
    Ledger,
    Run,
    Scale,
    Study,
    Sweep,
)
from clustered_fl.strict import merged


class _Loader(yaml.SafeLoader):
    """Reads 1e-3 as the number it is; in YAML 1.1 a number with an exponent needs a point."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?\d+[eE][-+]?\d+$"), list("+-0123456789")
)


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
    try:
        ledger = expanded(ledger)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
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


_PARTS: dict[str, type[BaseModel]] = {
    "encoders": Encoder,
    "groupings": Grouping,
    "runs": Run,
    "sweep": Sweep,
    "studies": Study,
    "artefacts": Artefact,
    "claims": Claim,
    "grounds": Ground,
    "warm_up": WarmUp,
    "contenders": Contender,
    "grouping": OneShot,
    "needs": Needs,
    "traffic": Traffic,
    "changes": Change,
}


def _allowed(location: tuple[int | str, ...], model: type[BaseModel]) -> str:
    # Every other part of a location is a name that somebody gave.
    for part in location[:-1:2]:
        model = _PARTS.get(str(part), model)
    return f"allowed are {', '.join(model.model_fields)}"


def _check_names(path: Path, ledger: Ledger) -> None:
    """What is computed has a name of its own, and everything that something refers to exists."""
    for name, count in Counter([*ledger.encoders, *ledger.groupings, *ledger.runs]).items():
        if count > 1:
            raise InputError(f"{path}: {name!r} is there twice among encoders, groupings and runs")
    for user, kind, name in _references(ledger):
        if name not in getattr(ledger, kind):
            one = "study" if kind == "studies" else kind.removesuffix("s")
            raise InputError(f"{path}: {user} names {one} {name!r}, which is not there")


def _references(ledger: Ledger) -> Iterator[tuple[str, str, str]]:
    """Who refers to what: user, section of the ledger, name."""
    for user, artefact in ledger.artefacts.items():
        for kind in ("runs", "studies", "groupings", "encoders"):
            yield from ((user, kind, name) for name in getattr(artefact, kind))
    for user, claim in ledger.claims.items():
        for kind in ("runs", "studies", "groupings"):
            yield from ((user, kind, name) for name in getattr(claim, kind))
        yield user, "artefacts", claim.artefact
    for user, run in ledger.runs.items():
        yield from ((user, "groupings", name) for name in [run.grouping] if name)
    for user, grouping in ledger.groupings.items():
        yield from ((user, "encoders", name) for name in [grouping.encoder] if name)
        yield from ((user, "runs", name) for name in [grouping.profiler] if name)


def _check_changes(path: Path, ledger: Ledger) -> None:
    """What a scale or a sweep makes of an entry must be one again."""
    for scale in SCALES:
        for name, run in ledger.runs.items():
            for member, config in _configurations(name, run, scale):
                where = f"{path}: run {member} at scale {scale}"
                _check_grouping(where, _checked(where, config, Configuration), ledger, scale)
        for name, grouping in ledger.groupings.items():
            where = f"{path}: grouping {name} at scale {scale}"
            config = _at(grouping, GroupingConfiguration, scale)
            _check_profiler(where, _checked(where, config, GroupingConfiguration), ledger, scale)
        for name, encoder in ledger.encoders.items():
            where = f"{path}: encoder {name} at scale {scale}"
            _checked(where, _at(encoder, EncoderConfiguration, scale), EncoderConfiguration)


def _checked(where: str, config: dict[str, Any], model: type[BaseModel]) -> dict[str, Any]:
    try:
        return model.model_validate(config).model_dump()
    except ValidationError as error:
        raise InputError(_first_problem(where, error, model)) from error


def _check_grouping(where: str, config: dict[str, Any], ledger: Ledger, scale: Scale) -> None:
    """A run averages by the relatedness of its own clients, or it means nothing."""
    if config["grouping"]:
        grouping = _at(ledger.groupings[config["grouping"]], GroupingConfiguration, scale)
        _require_same_clients(where, config, grouping, f"its grouping {config['grouping']}")


def _check_profiler(where: str, config: dict[str, Any], ledger: Ledger, scale: Scale) -> None:
    """A profiler is one network for all clients, with a code that images can be compared by."""
    name = config["profiler"]
    if not name:
        return
    if config["encoder"]:
        raise InputError(f"{where} names an encoder and a profiler; it can have one of them")
    if name not in ledger.runs or ledger.runs[name].sweep:
        raise InputError(f"{where}: profiler {name!r} must be a run without a sweep")
    run = _at(ledger.runs[name], Configuration, scale)
    if run["model"].get("name") not in RECONSTRUCTING_MODELS or run["grouping"]:
        raise InputError(
            f"{where}: profiler {name} must train one model for all clients, allowed are "
            f"{', '.join(RECONSTRUCTING_MODELS)}"
        )
    _require_same_clients(where, config, run, f"its profiler {name}")


def _require_same_clients(
    where: str, config: dict[str, Any], other: dict[str, Any], whose: str
) -> None:
    for key in ("dataset", "federation"):
        if config[key] != other[key]:
            raise InputError(f"{where} has another {key} than {whose}")


def resolved_encoders(ledger: Ledger, scale: Scale) -> dict[str, dict[str, Any]]:
    """Every encoder of the ledger at one scale, settings merged: name -> configuration."""
    about = {"paper": ledger.paper, "scale": scale}
    return {
        name: _at(encoder, EncoderConfiguration, scale) | about | {"name": name}
        for name, encoder in ledger.encoders.items()
    }


def resolved_groupings(ledger: Ledger, scale: Scale) -> dict[str, dict[str, Any]]:
    """Every grouping of the ledger at one scale, settings merged.

    Returns:
        Name -> "config", without the seed, and "seeds".
    """
    found = {}
    for name, grouping in ledger.groupings.items():
        config = _at(grouping, GroupingConfiguration, scale)
        config |= {"name": name, "paper": ledger.paper, "scale": scale}
        found[name] = {"config": config, "seeds": grouping.seeds.get(scale, [])}
    return found


def _at(entry: Encoder | Grouping | Run, model: type[BaseModel], scale: Scale) -> dict[str, Any]:
    """The part of an entry that a scale may change, as it is there."""
    return merged(entry.model_dump(include=set(model.model_fields)), entry.scales.get(scale, {}))


def resolved_runs(ledger: Ledger, scale: Scale) -> dict[str, dict[str, Any]]:
    """Every run of the ledger at one scale, sweeps expanded, settings merged.

    Returns:
        Run name -> "config", without the seed, "seeds", "memory_mb", "family" (the ledger's name).
    """
    found = {}
    for name, run in ledger.runs.items():
        for member, changed in _configurations(name, run, scale):
            config = Configuration.model_validate(changed).model_dump()
            config |= {"run": member, "paper": ledger.paper, "scale": scale}
            about = {"family": name, "seeds": run.seeds.get(scale, []), "memory_mb": run.memory_mb}
            found[member] = {"config": config} | about
    return found


def _configurations(name: str, run: Run, scale: Scale) -> Iterator[tuple[str, dict[str, Any]]]:
    config = _at(run, Configuration, scale)
    if run.sweep is None:
        yield name, config
        return
    for value in run.sweep.values.get(scale, []):
        nested: Any = value
        for key in reversed(run.sweep.setting.split(".")):
            nested = {key: nested}
        yield f"{name}_{value}", merged(config, nested)
