"""The published table of the engine's speed is what was measured."""

import json
from pathlib import Path

ROOT = Path(__file__).parents[2]
BENCHMARKS = ROOT / "benchmarks"


def overview() -> list[str]:
    """Lines of the first table of engine.md."""
    lines = (BENCHMARKS / "engine.md").read_text().splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("| cell |"))
    return lines[first : lines.index("", first)]


def test_the_documentation_shows_the_measured_table():
    shown = (ROOT / "docs" / "speed.md").read_text().splitlines()
    first = shown.index(overview()[0])
    assert shown[first : first + len(overview())] == overview()


def test_table_shows_the_measured_rows():
    rows = json.loads((BENCHMARKS / "engine.json").read_text())
    ours = {row["cell"]: row["cpu_s"] for row in rows if row["engine"] == "ours"}
    names = overview()[0].strip("| ").split(" | ")
    for line in overview()[2:]:
        cell, seconds, *ratios = line.strip("| ").split(" | ")
        base = ours.pop(cell)
        assert seconds == f"{base:.3f}"
        for engine, ratio in zip(names[2:], ratios, strict=True):
            own = next(r for r in rows if r["cell"] == cell and r["engine"] == engine)
            assert ratio == (f"{own['cpu_s'] / base:.1f}" if own.get("equal") else "-")
    assert not ours


def test_every_row_says_how_it_was_measured():
    for row in json.loads((BENCHMARKS / "engine.json").read_text()):
        if "note" not in row:
            about = {"load", "matmul_gflops", "machine", "commit", "date", "version"}
            assert about | {"wall_s", "cpu_s_each"} <= row.keys()
            assert row["equal"], row
