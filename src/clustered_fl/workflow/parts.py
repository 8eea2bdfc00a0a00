"""The parts of a ledger that are checked before anything runs (`workflow.checks`)."""

from collections.abc import Iterator, Mapping
from typing import Any

from clustered_fl.data.registry import Composed, Entry
from clustered_fl.ledger.resolution import resolved_encoders, resolved_groupings, resolved_runs
from clustered_fl.ledger.schema import SCALES
from clustered_fl.ledger.written import Ledger

Content = dict[str, Any]
"""Of a part, or of the configuration that it is a part of."""
Registry = Mapping[str, Entry | Composed]
Part = tuple[str, str, Content]
"""Place in the ledger, in words; kind of part, a key of `checks.CHECKS`; settings."""


def parts(ledger: Ledger, datasets: Registry) -> Iterator[Part]:
    """All parts of a ledger's runs, groupings, encoders and studies, at every scale."""
    for scale in SCALES:
        found: dict[str, Content] = {}
        runs, groupings = resolved_runs(ledger, scale), resolved_groupings(ledger, scale)
        for name, run in runs.items():
            config = run["config"]
            found[f"run {name}"] = _of_run(config, groupings) | _data(config, datasets)
        for name, grouping in groupings.items():
            config = grouping["config"]
            found[f"grouping {name}"] = _of_grouping(config, runs) | _data(config, datasets)
        for name, config in resolved_encoders(ledger, scale).items():
            own = {"encoder": config["model"], "encoder training": config["training"]}
            found[f"encoder {name}"] = own | _data(config, datasets)
        for name, study in ledger.studies.items():
            own = {"function": study.function} | study.settings_at(scale)
            found[f"study {name}"] = {"study": own}
        for where, own in found.items():
            yield from ((f"{where} at scale {scale}", kind, each) for kind, each in own.items())


def _of_run(config: Content, groupings: dict[str, Content]) -> Content:
    found = {key: config[key] for key in ("federation", "model", "training")}
    found["method"] = config["method"] | {"grouping": bool(config["grouping"])}
    if config["grouping"]:
        by = groupings[config["grouping"]]["config"]["method"].get("name")
        late = config["method"].get("newcomers"), config["federation"].get("newcomers")
        found["newcomers"] = {"grouping": by, "tested": all(late)}
    return found


def _of_grouping(config: Content, runs: dict[str, Content]) -> Content:
    profiler = config["profiler"]
    method = config["method"] | {"profiler": bool(profiler)}
    found = {"federation": config["federation"], "grouping": method}
    if profiler:
        found["kept"] = {"run": profiler, "method": config["method"]} | {
            key: runs[profiler]["config"][key] for key in ("rounds", "keep_every")
        }
    return found


def _data(config: Content, datasets: Registry) -> Content:
    name = config["dataset"]
    clients = {"clients": {"rows": _rows(name, datasets)} | config.get("federation", {})}
    about = {"name": name, "known": sorted(datasets), "sides": _sides(name, datasets)}
    return {"dataset": about} | clients


def _sides(name: str, datasets: Registry) -> tuple[int, ...]:
    """Height and width of images; () for texts and unknown datasets."""
    entry = datasets.get(name)
    first = datasets[min(entry.union)] if isinstance(entry, Composed) else entry
    return first.shape[1:] if first else ()


def _rows(name: str, datasets: Registry) -> int:
    """The largest possible number of rows of a dataset."""
    entry = datasets.get(name)
    if isinstance(entry, Composed):
        return sum(_rows(part, datasets) for part in entry.union)
    return entry.rows.train + entry.rows.test if entry else 0
