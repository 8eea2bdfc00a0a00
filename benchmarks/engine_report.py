"""The benchmark's rows as a Markdown table and as a figure."""

from pathlib import Path
from statistics import median

import matplotlib as mpl
import numpy as np

mpl.use("Agg")
from matplotlib import pyplot as plt

from clustered_fl.files import replacing
from measured import OURS
from peers import ENGINES
from problem import CELLS
from tables import Columns, Row, markdown, measured_on, write_lines

COLUMNS: Columns = {
    "cell": ("cell", "{}"),
    "engine": ("engine", "{}"),
    "version": ("version", "{}"),
    "cpu_s": ("CPU s / round", "{:.3f}"),
    "relative": ("CPU / ours", "{:.2f}"),
    "range": ("range", "{}"),
    "sessions": ("sessions", "{}"),
    "wall_s": ("wall s / round", "{:.3f}"),
    "first_round_s": ("first round s", "{:.1f}"),
    "equal": ("equal", "{}"),
    "error": ("error", "{:.0e}"),
    "load": ("load", "{:.1f}"),
    "matmul_gflops": ("matmul GFLOP/s", "{:.0f}"),
}

MEASURED = ("cpu_s", "wall_s", "first_round_s", "load", "matmul_gflops")


def with_session(rows: list[Row], new: list[Row]) -> list[Row]:
    """Rows with those of one more session of one cell, which is numbered.

    Earlier sessions of that cell stay if machine and commit are the same.
    """
    cell, source = new[0]["cell"], [new[0][name] for name in ("machine", "commit")]
    others = [row for row in rows if row["cell"] != cell]
    before = [r for r in rows if r["cell"] == cell and [r["machine"], r["commit"]] == source]
    session = 1 + max((row["session"] for row in before), default=0)
    return others + before + [row | {"session": session} for row in new]


def _with_ratios(rows: list[Row]) -> list[Row]:
    """One row per cell and engine, in their order, with its CPU time as a multiple of ours."""
    ours = {_session(row): row for row in rows if row["engine"] == OURS and "cpu_s" in row}
    sessions: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        base = ours.get(_session(row)) if "cpu_s" in row else None
        found = row | _ratio(row, base) if base else row
        sessions.setdefault((row["cell"], row["engine"]), []).append(found)
    names = list(ENGINES)
    order = sorted(sessions, key=lambda key: (CELLS.index(key[0]), names.index(key[1])))
    return [_over_sessions(sessions[key]) for key in order]


def _session(row: Row) -> tuple[str, int]:
    return row["cell"], row["session"]


def _ratio(row: Row, ours: Row) -> Row:
    """CPU time of an engine as a multiple of ours: of the medians, and of every repetition."""
    each = [a / b for a, b in zip(row["cpu_s_each"], ours["cpu_s_each"], strict=True)]
    return {"relative": row["cpu_s"] / ours["cpu_s"], "relative_each": each}


def _over_sessions(rows: list[Row]) -> Row:
    """Medians over the sessions of an engine, and the range of its ratio over all repetitions.

    An engine that failed in one session has its note there, and no numbers.
    """
    failed = next((row for row in rows if "note" in row), None)
    if failed:
        return failed
    compared = all("relative" in row for row in rows)
    names = (*MEASURED, "relative") if compared else MEASURED
    medians = {name: median(row[name] for row in rows) for name in names}
    found = rows[-1] | medians | {"sessions": len(rows)}
    found |= {"equal": all(row["equal"] for row in rows), "error": max(r["error"] for r in rows)}
    if compared:
        each = [ratio for row in rows for ratio in row["relative_each"]]
        found["range"] = f"{min(each):.2f} to {max(each):.2f}"
    return found


def _overview(rows: list[Row]) -> list[str]:
    """A line per cell: what ours takes, and the CPU seconds of the others in units of it."""
    others = {name: (name, "{:.1f}") for name in ENGINES if name != OURS}
    columns: Columns = {"cell": ("cell", "{}"), "ours": ("ours, CPU s", "{:.3f}"), **others}
    lines: dict[str, Row] = {}
    for row in _with_ratios(rows):
        line = lines.setdefault(row["cell"], {"cell": row["cell"]})
        if row.get("equal"):
            own = row["engine"] == OURS
            line[row["engine"]] = row["cpu_s"] if own else row.get("relative")
    return markdown(list(lines.values()), columns)


def write_table(rows: list[Row], path: Path) -> None:
    """Write an overview and all rows as Markdown tables; a reason stands where a version would."""
    shown = [{**row, "version": row.get("note", row.get("version"))} for row in _with_ratios(rows)]
    lines = [
        "# Engines side by side",
        "",
        f"One round of local training on one thread per operation. {measured_on(rows)}",
        "README.md beside this file explains each column and its limits.",
        "CPU seconds per round of our engine, and CPU time of the others as a multiple of it:",
        "",
        *_overview(rows),
        "",
    ]
    write_lines(lines + markdown(shown, COLUMNS), path)


def write_figure(rows: list[Row], path: Path) -> None:
    """Bars of CPU time per round as a multiple of ours; only equal engines, cells that have ours.

    Nothing is written while there is no such cell.
    """
    shown = [row for row in _with_ratios(rows) if "relative" in row and row["equal"]]
    if not shown:
        return
    cells = list(dict.fromkeys(row["cell"] for row in shown))
    engines = [name for name in ENGINES if any(row["engine"] == name for row in shown)]
    figure, axes = plt.subplots(figsize=(8, 1.2 + 1.3 * len(cells)), layout="constrained")
    height = 0.85 / max(1, len(engines))
    for place, engine in enumerate(engines):
        own = [row for row in shown if row["engine"] == engine]
        middles = np.array([cells.index(row["cell"]) for row in own]) + height * place
        bars = axes.barh(middles, [row["relative"] for row in own], height, label=engine)
        axes.bar_label(bars, fmt="%.2f", padding=2, fontsize=7)
    axes.set_yticks(np.arange(len(cells)) + height * (len(engines) - 1) / 2, cells)
    axes.invert_yaxis()
    axes.margins(x=0.08, y=0.01)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_xlabel("CPU seconds per round, ours = 1")
    figure.legend(fontsize=7, loc="outside right upper")
    with replacing(path) as beside:
        figure.savefig(beside, dpi=150, format="png")
    plt.close(figure)
