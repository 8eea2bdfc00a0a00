"""The published table of the engine's speed is what was measured."""

import json
from importlib import import_module
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from statistics import median

import pytest

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
    cells = {row["cell"] for row in rows}
    names = overview()[0].strip("| ").split(" | ")
    for line in overview()[2:]:
        cell, seconds, *ratios = line.strip("| ").split(" | ")
        cells.remove(cell)
        sessions = of_sessions([row for row in rows if row["cell"] == cell])
        assert seconds == f"{median(session['ours']['cpu_s'] for session in sessions):.3f}"
        for engine, ratio in zip(names[2:], ratios, strict=True):
            equal = all(session[engine].get("equal") for session in sessions)
            assert ratio == (f"{median(relative(sessions, engine)):.1f}" if equal else "-")
    assert not cells


def of_sessions(rows):
    """The rows of each session of a cell, by engine."""
    key = itemgetter("session")
    found = groupby(sorted(rows, key=key), key)
    return [{row["engine"]: row for row in session} for _, session in found]


def relative(sessions, engine):
    return [session[engine]["cpu_s"] / session["ours"]["cpu_s"] for session in sessions]


@pytest.fixture
def engine_report(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    return import_module("engine_report")


def row(engine, cpu_s, **others):
    about = {"cell": "mlp-M20-B10", "engine": engine, "machine": "M", "commit": "c", "date": "d"}
    numbers = dict.fromkeys(("wall_s", "first_round_s", "load", "matmul_gflops"), 1.0)
    each = [cpu_s - 0.5, cpu_s + 0.5]
    known = {"cpu_s": cpu_s, "cpu_s_each": each, "equal": True, "error": 0.0, "version": "1"}
    return about | numbers | known | others


def session(ours, loop, **others):
    return [row("ours", ours, **others), row("plain-loop", loop, **others)]


def test_sessions_of_the_same_code_and_machine_are_kept(engine_report):
    rows = []
    for new in (session(1.0, 4.0), session(2.0, 6.0), session(1.0, 9.0)):
        rows = engine_report.with_session(rows, new)
    assert [found["session"] for found in rows] == [1, 1, 2, 2, 3, 3]
    others = engine_report.with_session(rows, session(1.0, 2.0, cell="leaf-M20-B10"))
    assert len(others) == 8
    assert len(engine_report.with_session(rows, session(1.0, 2.0, commit="d"))) == 2
    assert len(engine_report.with_session(rows, session(1.0, 2.0, machine="N"))) == 2


def test_the_table_shows_medians_and_the_range_over_sessions(engine_report, tmp_path):
    rows = []
    for new in (session(1.0, 4.0), session(2.0, 6.0), session(1.0, 9.0)):
        rows = engine_report.with_session(rows, new)
    engine_report.write_table(rows, tmp_path / "engine.md")
    text = (tmp_path / "engine.md").read_text()
    assert "| mlp-M20-B10 | 1.000 | 4.0 |" in text
    assert "| plain-loop | 1 | 6.000 | 4.00 | 2.60 to 17.00 | 3 |" in text


def test_an_engine_that_failed_in_a_session_has_no_numbers(engine_report, tmp_path):
    failed = {"engine": "plain-loop", "cell": "mlp-M20-B10", "note": "killed"}
    about = {"machine": "M", "commit": "c", "date": "d"}
    rows = engine_report.with_session([], session(1.0, 4.0))
    rows = engine_report.with_session(rows, [row("ours", 1.0), failed | about])
    engine_report.write_table(rows, tmp_path / "engine.md")
    assert "| plain-loop | killed | - | - |" in (tmp_path / "engine.md").read_text()


def test_every_row_says_how_it_was_measured():
    for row in json.loads((BENCHMARKS / "engine.json").read_text()):
        if "note" not in row:
            about = {"load", "matmul_gflops", "machine", "commit", "date", "version"}
            assert about | {"wall_s", "cpu_s_each"} <= row.keys()
            assert row["equal"], row
