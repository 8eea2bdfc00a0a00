"""The entries of a ledger at one scale: settings merged, sweeps expanded."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from clustered_fl.errors import InputError
from clustered_fl.ledger.schema import (
    SCALES,
    Configuration,
    EncoderConfiguration,
    GroupingConfiguration,
    Scale,
    Sweep,
)
from clustered_fl.ledger.tables import layered
from clustered_fl.ledger.written import SECTIONS, Ledger
from clustered_fl.models import RECONSTRUCTING_MODELS
from clustered_fl.options import validated

CADENCE = {"evaluate_every", "keep_every"}
"""Keys of a run that do not affect its training."""


def resolved_encoders(ledger: Ledger, scale: Scale) -> dict[str, dict[str, Any]]:
    """All encoders at one scale with merged settings: name -> configuration."""
    about = {"paper": ledger.paper, "scale": scale}
    return {
        name: _at(f"encoder {name}", encoder, EncoderConfiguration, scale) | about | {"name": name}
        for name, encoder in ledger.encoders.items()
    }


def resolved_groupings(ledger: Ledger, scale: Scale) -> dict[str, dict[str, Any]]:
    """All groupings at one scale: name -> "config", without the seed, and "seeds"."""
    found = {}
    for name, grouping in ledger.groupings.items():
        config = _at(f"grouping {name}", grouping, GroupingConfiguration, scale)
        config |= {"name": name, "paper": ledger.paper, "scale": scale}
        found[name] = {"config": config, "seeds": grouping.seeds.get(scale, [])}
    return found


def resolved_runs(ledger: Ledger, scale: Scale) -> dict[str, dict[str, Any]]:
    """All runs at one scale, with expanded sweeps and merged settings.

    Returns:
        Run name -> "config", without the seed, "seeds", "memory_mb", "family" (the ledger's name).
    """
    found = {}
    for name, run in ledger.runs.items():
        about = {"family": name, "seeds": run.seeds.get(scale, []), "memory_mb": run.memory_mb}
        for member, swept in _members(name, run.sweep, scale):
            config = _at(f"run {member}", run, Configuration, scale, swept)
            config |= {"run": member, "paper": ledger.paper, "scale": scale}
            found[member] = {"config": config} | about
    return found


def _at(
    what: str, entry: Any, model: type[BaseModel], scale: Scale, swept: dict[str, Any] | None = None
) -> dict[str, Any]:
    """The part of an entry that a scale or sweep may change, with these changes."""
    config = layered(entry.model_dump(include=set(model.model_fields)), entry.scales.get(scale, {}))
    where = f"{what} at scale {scale}"
    return validated(model, where, layered(config, swept or {}), "key").model_dump()


def _members(
    name: str, sweep: Sweep | None, scale: Scale
) -> Iterator[tuple[str, dict[str, Any] | None]]:
    """Names of the runs of an entry, and the sweep's change in each."""
    if sweep is None:
        yield name, None
        return
    for value in sweep.values.get(scale, []):
        nested: Any = value
        for key in reversed(sweep.setting.split(".")):
            nested = {key: nested}
        yield f"{name}_{value}", nested


def record_names(ledger: Ledger) -> list[str]:
    """Names of all records at any scale, and of their sweeps."""
    found = []
    for section in SECTIONS.values():
        for name, entry in getattr(ledger, section).items():
            sweep = getattr(entry, "sweep", None)
            members = (member for scale in SCALES for member, _ in _members(name, sweep, scale))
            found += dict.fromkeys((name, *members))
    return found


def check_names(ledger: Ledger) -> None:
    """Check that all records have different names, and so different folders.

    Raises: InputError if names differ only in case, which some file systems ignore.
    """
    for name, count in Counter(map(str.casefold, record_names(ledger))).items():
        if count > 1:
            raise InputError(
                f"{name!r} is there twice among encoders, groupings, studies, runs and the runs "
                "that sweeps stand for"
            )


def changed_at(ledger: Ledger, name: str, scale: Scale) -> bool:
    """Whether a scale changes a run or grouping, or anything it depends on."""
    entry = (ledger.runs | ledger.groupings | ledger.encoders)[name]
    if entry.scales.get(scale, {}).keys() - CADENCE:
        return True
    below = (getattr(entry, key, None) for key in ("grouping", "encoder", "profiler"))
    return any(changed_at(ledger, each, scale) for each in below if each)


def check_changes(ledger: Ledger) -> None:
    """Check that entries are valid at every scale, and fit the entries they depend on.

    Raises: InputError naming the entry and the scale.
    """
    for scale in SCALES:
        resolved_encoders(ledger, scale)
        runs, groupings = resolved_runs(ledger, scale), resolved_groupings(ledger, scale)
        for name, run in runs.items():
            grouping = run["config"]["grouping"]
            if grouping:
                where, own = f"run {name} at scale {scale}", groupings[grouping]
                _require_same_clients(where, run, own, f"its grouping {grouping}")
        for name, grouping in groupings.items():
            _check_profiler(f"grouping {name} at scale {scale}", grouping, runs)


def _check_profiler(where: str, grouping: dict[str, Any], runs: dict[str, dict[str, Any]]) -> None:
    """Check that a profiler has one network for all clients, with an encoder."""
    config = grouping["config"]
    name = config["profiler"]
    if not name:
        return
    if config["encoder"]:
        raise InputError(f"{where} names an encoder and a profiler; it can have one of them")
    if name not in runs or runs[name]["family"] != name:
        raise InputError(f"{where}: profiler {name!r} must be a run without a sweep")
    run = runs[name]["config"]
    if run["model"].get("name") not in RECONSTRUCTING_MODELS or run["grouping"]:
        raise InputError(
            f"{where}: profiler {name} must train one model for all clients, allowed are "
            f"{', '.join(RECONSTRUCTING_MODELS)}"
        )
    _require_same_clients(where, grouping, runs[name], f"its profiler {name}")


def _require_same_clients(
    where: str, entry: dict[str, Any], below: dict[str, Any], whose: str
) -> None:
    """Check that the clients of an entry, of every seed, are also those of what it depends on.

    A grouping's seeds are what is archived of it, so it must have those of its runs.
    """
    for key in ("dataset", "federation"):
        if entry["config"][key] != below["config"][key]:
            raise InputError(f"{where} has another {key} than {whose}")
    if missing := sorted({*entry["seeds"]} - {*below["seeds"]}):
        raise InputError(
            f"{where} has the seed {missing[0]}, which {whose} lacks; it has "
            f"{', '.join(map(str, below['seeds'])) or 'none'}"
        )
