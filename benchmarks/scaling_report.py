"""The rows of `scaling.py` as Markdown tables and as a figure."""

import os
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from clustered_fl.files import replacing
from tables import Columns, Row, markdown, measured_on, write_lines

TIMES: Columns = {"wall_s": ("wall s", "{:.3f}"), "cpu_s": ("CPU s", "{:.3f}")}
MACHINE: Columns = {
    "load": ("load", "{:.1f}"),
    "matmul_gflops": ("matmul GFLOP/s", "{:.0f}"),
    "note": ("note", "{}"),
}
# Part -> heading and columns.
TABLES: dict[str, tuple[str, Columns]] = {
    "clients": (
        "One round by number of clients and of workers",
        {
            "clients": ("clients", "{}"),
            "workers": ("workers", "{}"),
            "version": ("version", "{}"),
            **TIMES,
            "clients_per_s": ("clients / s", "{:.1f}"),
            "loaded_mb": ("MB before", "{:.0f}"),
            "peak_mb": ("peak MB", "{:.0f}"),
        },
    ),
    "jobs": (
        "Jobs side by side",
        {
            "policy": ("threads", "{}"),
            "jobs": ("jobs", "{}"),
            **TIMES,
            "clients_per_s": ("clients / s", "{:.1f}"),
            "relative": ("of one job's", "{:.2f}"),
        },
    ),
    "checkpoints": (
        "A run with checkpoints and without",
        {
            "checkpoints": ("checkpoints", "{}"),
            "clients": ("clients", "{}"),
            "rounds": ("rounds", "{}"),
            **TIMES,
            "per_checkpoint_ms": ("ms each", "{:.1f}"),
            "file_kb": ("file KB", "{:.0f}"),
        },
    ),
    "start": ("From the start of a process", {"until": ("until", "{}"), "wall_s": TIMES["wall_s"]}),
    "memory": (
        "Resident memory at round 100 and round 2,000",
        {
            "clients": ("clients", "{}"),
            "early_mb": ("MB at 100", "{:.1f}"),
            "late_mb": ("MB at 2,000", "{:.1f}"),
            "growth_mb": ("growth MB", "{:.2f}"),
        },
    ),
    "cohorts": (
        "A run of many MLP clients",
        {
            "clients": ("clients", "{}"),
            "rounds": ("rounds", "{}"),
            **TIMES,
            "loaded_mb": ("MB before", "{:.0f}"),
            "peak_mb": ("peak MB", "{:.0f}"),
            "file_kb": ("checkpoint KB", "{:.0f}"),
        },
    ),
}


def write_table(known: dict[str, list[Row]], path: Path) -> None:
    """Write the table of every part that was measured."""
    lines = [
        "# Scaling of our engine",
        "",
        measured_on(row for rows in known.values() for row in rows),
        "README.md beside this file explains each column.",
    ]
    for part, (heading, columns) in TABLES.items():
        if part in known:
            lines += ["", f"## {heading}", "", *markdown(known[part], columns | MACHINE)]
    write_lines(lines, path)


def write_figure(known: dict[str, list[Row]], path: Path) -> None:
    """Time and memory by number of clients, and the rate of jobs side by side."""
    drawn = [(part, draw) for part, draw in PANELS if part in known]
    if not drawn:
        return
    figure, panels = plt.subplots(
        1, len(drawn), figsize=(4 * len(drawn), 3.4), layout="constrained", squeeze=False
    )
    for axes, (part, draw) in zip(panels[0], drawn, strict=True):
        draw([row for row in known[part] if "note" not in row], axes)
        axes.set_ylim(bottom=0)
        axes.legend(fontsize=7)
    with replacing(path) as beside:
        figure.savefig(beside, dpi=150, format="png")
    plt.close(figure)


def _lines(rows: list[Row], axes: Axes, series: str, x: str, y: str, scale: float = 1.0) -> None:
    """One line per value of `series`, in the order in which they come."""
    for name in dict.fromkeys(row[series] for row in rows):
        own = [row for row in rows if row[series] == name]
        label = name if isinstance(name, str) else f"{name} {series.rstrip('s')}{'s'[: name > 1]}"
        axes.plot([row[x] for row in own], [row[y] * scale for row in own], marker="o", label=label)


def _times(rows: list[Row], axes: Axes) -> None:
    shown = [row | {"each": row["wall_s"] / row["clients"]} for row in rows]
    _lines(shown, axes, "workers", "clients", "each", 1e3)
    axes.set(xscale="log", xlabel="clients", ylabel="wall ms per client and round")


def _memory(rows: list[Row], axes: Axes) -> None:
    _lines(rows, axes, "workers", "clients", "peak_mb")
    axes.plot(
        *zip(*sorted({(row["clients"], row["loaded_mb"]) for row in rows}), strict=True),
        color="grey",
        linestyle=":",
        label="before the first round",
    )
    axes.set(xlabel="clients", ylabel="peak resident MB")


def _jobs(rows: list[Row], axes: Axes) -> None:
    _lines([row for row in rows if "relative" in row], axes, "policy", "jobs", "relative")
    numbers = sorted({row["jobs"] for row in rows})
    ideal = [min(number, os.cpu_count() or 1) for number in numbers]
    axes.plot(numbers, ideal, color="grey", linestyle=":", label="one core each")
    axes.set(xlabel="jobs at once", ylabel="clients per second, one job = 1", xticks=numbers)


PANELS = (("clients", _times), ("clients", _memory), ("jobs", _jobs))
