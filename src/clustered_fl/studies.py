"""One study: a computation without training, from clustered_fl.theory; it leaves tables."""

import platform
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from clustered_fl.errors import InputError
from clustered_fl.files import digest, read_json, replacing, write_json
from clustered_fl.options import call

if TYPE_CHECKING:
    import pandas as pd


def execute(function: str, settings: dict[str, Any], seed: int, code: str, out: Path) -> None:
    """Call `clustered_fl.theory.<function>` and write its tables and a record to `out`.

    Every table becomes `<key>.parquet`; record.json comes last, so that its presence means whole.

    Args:
        function: module.function.
        settings: its arguments apart from the seed.
        seed: of all its random draws.
        code: fingerprint of its module.
        out: folder.
    Raises:
        InputError: if there is no such function, or it has no such setting.
    """
    compute = _function(function)
    started = time.monotonic()
    tables = call(compute, f"study {function}", settings, seed=seed)
    for key, table in tables.items():
        with replacing(out / f"{key}.parquet") as beside:
            table.to_parquet(beside, index=False)
    record = {
        "function": function,
        "settings": settings,
        "config_digest": digest([function, settings, seed]),
        "seed": seed,
        "code": code,
        "tables": sorted(tables),
        "versions": {"python": platform.python_version(), "numpy": np.__version__},
        "seconds": round(time.monotonic() - started, 1),
    }
    write_json(out / "record.json", record)


def _function(name: str) -> Callable[..., Any]:
    module, _, last = name.rpartition(".")
    try:
        return getattr(import_module(f"clustered_fl.theory.{module}"), last)
    except (ImportError, AttributeError) as error:
        raise InputError(f"there is no study {name!r} below clustered_fl.theory") from error


def load_tables(folder: Path) -> "dict[str, pd.DataFrame]":
    """All tables of the study in `folder`, by name.

    Raises:
        InputError: if the study left no record there.
    """
    import pandas as pd

    names = read_json(folder / "record.json")["tables"]
    return {name: pd.read_parquet(folder / f"{name}.parquet") for name in names}
