"""One study: a computation without training, from clustered_fl.theory, that writes tables."""

import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from clustered_fl.errors import InputError
from clustered_fl.files import digest, replacing
from clustered_fl.options import call, definition
from clustered_fl.records import seal
from clustered_fl.records.reading import Origin


def execute(config: dict[str, Any], origin: Origin, out: Path) -> None:
    """Call a function below `clustered_fl.theory` and write its tables and a record to `out`.

    Every table becomes `<key>.parquet`; record.json is written last, as a mark of completeness.
    `config` has "function" (paper.module.function), "settings", its arguments, and "seed", that of
    its random draws.

    Raises: InputError if the function or a setting is unknown, or it returns other tables than it
        declares.
    """
    compute, started = _function(config["function"]), time.monotonic()
    tables = call(compute, f"study {config['function']}", config["settings"], seed=config["seed"])
    if sorted(tables) != sorted(compute.tables):
        declared, made = ", ".join(compute.tables), ", ".join(tables)
        raise InputError(f"study {config['function']} declares {declared}, and it made {made}")
    for key, table in tables.items():
        with replacing(out / f"{key}.parquet") as beside:
            table.to_parquet(beside, index=False)
    cost = {"seconds": round(time.monotonic() - started, 1)}
    record = {
        "config": config,
        "config_digest": digest(config),
        **origin._asdict(),
        "tables": sorted(tables),
        "versions": {"python": platform.python_version(), "numpy": np.__version__},
    }
    seal.write(out, record, cost, [f"{key}.parquet" for key in tables])


def _function(name: str) -> Callable[..., Any]:
    module, _, last = name.rpartition(".")
    found = definition(f"clustered_fl.theory.{module}", last)
    if not hasattr(found, "tables"):
        raise InputError(f"there is no study {name!r} below clustered_fl.theory")
    return found
