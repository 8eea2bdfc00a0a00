"""How fast is our engine next to others? One table, one figure, one JSON file.

    python benchmarks/engine.py --cells lenet28-M20-B10 --out benchmarks/engine.json

Without arguments it measures every cell with every engine. It can be stopped and continued. A cell
that is measured again is a further session of the same code on the same machine; rows of other code
or of another machine are replaced. See benchmarks/README.md.
"""

import argparse
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from clustered_fl.engine.training import PATHS
from clustered_fl.files import read_json, write_json
from engine_report import with_session, write_figure, write_table
from gate import Literal, Outcome, literal_step, verdict
from measured import OURS, Failed, Measured
from peers import ENGINES
from problem import CELLS, single_step
from timing import Turns, origin

REFERENCE = "plain-loop"
"""Always measured, because the gate compares whole rounds with it."""
console = Console()


def measure(cell: str, engines: list[str], folder: Path, path: str) -> list[dict[str, Any]]:
    """Rows of one cell, one per engine, failed ones included."""
    with Turns() as turns:
        for engine in engines:
            console.print(f"{cell}: starting {engine}")
            turns.start(engine, engine, cell, folder, **_options(engine, path))
        turns.repeat()
        console.print(f"{cell}: comparing updates")
        literal = literal_step(single_step(cell))
        try:
            plain = turns.ended(REFERENCE).outcome()
        except Failed as reason:
            plain, turns.failed = None, dict.fromkeys(engines, f"{REFERENCE} failed: {reason}")
        steps = {e: partial(_one_step, e, cell, folder, _options(e, path)) for e in engines}
        return [_row(cell, engine, turns, literal, plain, steps[engine]) for engine in engines]


def _options(engine: str, path: str) -> dict[str, str]:
    """What the engine's adapter is given."""
    return {"path": path} if engine == OURS else {}


def _row(
    cell: str, engine: str, turns: Turns, literal: Literal, plain: Outcome, step: Callable
) -> dict[str, Any]:
    """What is known of one engine."""
    row = {"cell": cell, "engine": engine, **origin()}
    row["matmul_gflops"] = turns.found.matmul_gflops
    try:
        measured = turns.ended(engine)
        whole = plain if engine == REFERENCE else measured.outcome()
        measured.close()  # Ray would take a second simulation for part of the first, and wait
        found = verdict(step(), literal, whole, plain)
    except Failed as reason:
        console.print(f"{cell}: no {engine}: {reason}")
        return row | {"note": str(reason)}
    known = {"version": measured.first["version"], "first_round_s": measured.first_round_s}
    if not np.isnan(whole.accuracy):
        known["accuracy"] = whole.accuracy
    known["cpu_s_each"] = turns.found.each(engine, "cpu_s")
    return row | known | turns.found.medians(engine) | vars(found)


def _one_step(engine: str, cell: str, folder: Path, options: dict[str, str]) -> np.ndarray:
    """Updates [M, P] after one step, in a new process: Ray does not survive a second start."""
    measured = Measured(engine, cell, folder, step=True, **options)
    try:
        return measured.outcome().updates
    finally:
        measured.close()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cells", nargs="+", choices=CELLS, default=CELLS, metavar="CELL")
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES))
    parser.add_argument("--path", choices=["auto", *PATHS], default="auto", help="how ours trains")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("engine.json"))
    return parser.parse_args()


def main() -> None:
    """Measure cell after cell, and write what is known after each."""
    arguments = _arguments()
    engines = [name for name in ENGINES if name in {*arguments.engines, REFERENCE}]
    rows = read_json(arguments.out) if arguments.out.exists() else []
    for cell in arguments.cells:
        with tempfile.TemporaryDirectory() as folder:
            new = measure(cell, engines, Path(folder), arguments.path)
        rows = with_session(rows, new)
        write_json(arguments.out, rows)
    write_table(rows, arguments.out.with_suffix(".md"))
    write_figure(rows, arguments.out.with_suffix(".png"))
    console.print(arguments.out.with_suffix(".md").read_text())


if __name__ == "__main__":
    main()
