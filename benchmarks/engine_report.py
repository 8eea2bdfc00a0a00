"""The benchmark's rows as a Markdown table and as a figure."""

from pathlib import Path

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
    "wall_s": ("wall s / round", "{:.3f}"),
    "first_round_s": ("first round s", "{:.1f}"),
    "equal": ("equal", "{}"),
    "error": ("error", "{:.0e}"),
    "load": ("load", "{:.1f}"),
    "matmul_gflops": ("matmul GFLOP/s", "{:.0f}"),
}


def _with_ratios(rows: list[Row]) -> list[Row]:
    """Rows in the order of cells and engines, each with its CPU time as a multiple of ours."""
    ours = {row["cell"]: row for row in rows if row["engine"] == OURS and "cpu_s" in row}
    found = [
        row | _ratio(row, ours[row["cell"]]) if "cpu_s" in row and row["cell"] in ours else row
        for row in rows
    ]
    names = list(ENGINES)
    return sorted(found, key=lambda r: (CELLS.index(r["cell"]), names.index(r["engine"])))


def _ratio(row: Row, ours: Row) -> Row:
    """CPU time of an engine as a multiple of ours, and its range over the repetitions."""
    each = [a / b for a, b in zip(row["cpu_s_each"], ours["cpu_s_each"], strict=True)]
    return {
        "relative": row["cpu_s"] / ours["cpu_s"],
        "range": f"{min(each):.2f} to {max(each):.2f}",
    }


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
