"""The fastest path is taken, and the decision is kept."""

import json
from pathlib import Path

import pytest
from test_engine import make_engine

from clustered_fl.engine import calibration
from clustered_fl.engine.calibration import calibrate, measure
from clustered_fl.engine.training import PATHS, supported
from clustered_fl.engine.workload import LocalSettings
from clustered_fl.errors import InputError

SETTINGS = LocalSettings(epochs=3, batch_size=10, lr=0.1)


def test_every_path_that_a_cpu_may_take_is_measured() -> None:
    workload = make_engine("mlp", SETTINGS).workload
    seconds = measure(workload)
    assert [*seconds, "stacked"] == supported(workload)
    assert all(0 < value < 10 for value in seconds.values())


def pretend(monkeypatch: pytest.MonkeyPatch, seconds: dict[str, float]) -> list[int]:
    calls: list[int] = []
    monkeypatch.setattr(calibration, "measure", lambda workload: calls.append(1) or seconds)
    return calls


@pytest.mark.parametrize(
    ("seconds", "chosen"),
    [
        ({"compiled": 1.0, "in_place": 2.0, "sequential": 3.0}, "compiled"),
        ({"compiled": 3.0, "in_place": 1.0, "sequential": 2.0}, "in_place"),
        ({"compiled": 3.0, "in_place": 2.0, "sequential": 1.0}, "sequential"),
        ({"compiled": 1.09, "in_place": 1.05, "sequential": 1.0}, "compiled"),
    ],
)
def test_the_fastest_is_taken_unless_it_is_close(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: dict[str, float], chosen: str
) -> None:
    pretend(monkeypatch, seconds)
    engine = make_engine("mlp", SETTINGS)
    calibrate(engine, tmp_path, print)
    assert engine.path == chosen
    assert isinstance(engine._path, PATHS[chosen])


def test_a_decision_is_kept_for_its_kind_of_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = {"compiled": 5.0, "in_place": 5.0, "sequential": 1.0}
    calls = pretend(monkeypatch, slow)
    lines: list[str] = []
    for seed in (0, 1):
        calibrate(make_engine("mlp", SETTINGS, seed=seed), tmp_path, lines.append)
    assert len(calls) == 1
    (path,) = tmp_path.iterdir()
    assert json.loads(path.read_text())["seconds_per_step"] == slow
    expected = f"compiled 5e+03, in_place 5e+03, sequential 1e+03; kept in {path})"
    assert lines == [f"path sequential (ms per step and client: {expected}"] * 2
    calibrate(make_engine("mlp", LocalSettings(epochs=1, batch_size=20, lr=0.1)), tmp_path, print)
    assert len(calls) == 2


def test_the_first_of_two_jobs_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = {"compiled": 1.0, "in_place": 9.0, "sequential": 9.0}
    second = {"compiled": 9.0, "in_place": 9.0, "sequential": 1.0}

    def slowly(workload: object) -> dict[str, float]:
        pretend(monkeypatch, first)
        calibrate(make_engine("mlp", SETTINGS), tmp_path, print)
        return second

    monkeypatch.setattr(calibration, "measure", slowly)
    engine = make_engine("mlp", SETTINGS)
    calibrate(engine, tmp_path, print)
    assert engine.path == "compiled"


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", "{}", '{"seconds_per_step": {}}', '{"seconds_per_step": {"magic": 1.0}}']
    + [f'{{"seconds_per_step": {{"sequential": {value}}}}}' for value in ("NaN", "0.0", "-1.0")],
)
def test_a_broken_measurement_is_told_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str
) -> None:
    pretend(monkeypatch, {"sequential": 1.0})
    engine = make_engine("mlp", SETTINGS)
    calibrate(engine, tmp_path, print)
    (path,) = tmp_path.iterdir()
    path.write_text(content)
    with pytest.raises(InputError) as caught:
        calibrate(engine, tmp_path, print)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
