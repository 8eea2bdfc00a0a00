"""A checkpoint is continued by the run it belongs to and by no other; damage is not continued."""

import errno
import fcntl
import os
import resource
from socket import gethostname
from threading import Event, active_count
from unittest.mock import Mock

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save_file

from clustered_fl.engine import checkpoint
from clustered_fl.engine.checkpoint import load, save, sole_owner
from clustered_fl.errors import InputError

TENSORS = {"models": torch.arange(6.0).reshape(2, 3), "node0.model": torch.ones(3)}
CONTENT = {"completed": 3, "seconds": 1.5, "rows": [[0, "client", 1, "loss", 0.25]]}


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "new" / "seed0.safetensors"
    save(path, "this run", TENSORS, CONTENT)
    return path


def test_what_was_saved_is_loaded(path):
    tensors, content = load(path, "this run")
    assert content == CONTENT
    assert tensors.keys() == TENSORS.keys()
    assert all(torch.equal(tensors[name], TENSORS[name]) for name in TENSORS)


def test_the_next_one_replaces_it_and_leaves_nothing_else(path):
    save(path, "this run", {"models": torch.zeros(1)}, {"completed": 4})
    assert load(path, "this run")[1] == {"completed": 4}
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


@given(value=st.floats(allow_nan=False))
def test_numbers_come_back_exactly(tmp_path, value):
    """Rounding a measurement would make a resumed run differ from an undisturbed one."""
    path = tmp_path / "exact.safetensors"
    save(path, "a", {"x": torch.zeros(1)}, {"value": value})
    assert load(path, "a")[1]["value"] == value


def test_a_measurement_that_is_not_a_number_survives(tmp_path):
    save(tmp_path / "c", "a", {"x": torch.zeros(1)}, {"value": float("nan")})
    value = load(tmp_path / "c", "a")[1]["value"]
    assert value != value


def test_views_and_shared_memory_are_saved_as_what_they_are(tmp_path):
    whole = torch.arange(12.0).reshape(3, 4)
    save(tmp_path / "c", "a", {"column": whole[:, 1], "row": whole[2], "turned": whole.T}, {})
    tensors, _ = load(tmp_path / "c", "a")
    assert tensors["column"].tolist() == [1, 5, 9]
    assert tensors["row"].tolist() == [8, 9, 10, 11]
    assert torch.equal(tensors["turned"], whole.T)


def test_another_configuration_or_code_does_not_continue_it(path):
    assert load(path, "another run") is None


def test_absent_is_nothing_to_continue(tmp_path):
    assert load(tmp_path / "absent", "this run") is None


@pytest.mark.parametrize("kept", [0, 4, 40, -1])
def test_a_truncated_one_is_nothing_to_continue(path, kept):
    path.write_bytes(path.read_bytes()[:kept])
    assert load(path, "this run") is None


def test_another_kind_of_file_is_nothing_to_continue(path):
    path.write_text("not a checkpoint")
    assert load(path, "this run") is None


def test_damage_is_told_and_another_configuration_is_not(path):
    lines = []
    assert load(path, "another run", lines.append) is None
    assert lines == []
    content = bytearray(path.read_bytes())
    content[-10] ^= 1
    path.write_bytes(content)
    assert load(path, "this run", lines.append) is None
    why = "its content is not what was written"
    assert lines == [f"the checkpoint {path} is damaged ({why}); starting at the beginning"]


@pytest.mark.parametrize("free", [0, 1])
def test_one_that_the_system_cannot_read_now_is_not_replaced(path, free):
    """With one free descriptor PyTorch raises its own error, which ends the job as well."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.dup(0)
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest + free, hard))
    try:
        with pytest.raises((InputError, RuntimeError), match="Too many open files"):
            load(path, "this run", pytest.fail)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert load(path, "this run")[1] == CONTENT


def test_content_does_not_count_against_the_limit_of_headers(tmp_path):
    """A header of safetensors ends at 100 MB."""
    save(tmp_path / "c", "a", {"x": torch.zeros(1)}, {"text": "x" * 1_000_000})
    assert int.from_bytes((tmp_path / "c").read_bytes()[:8], "little") < 1000
    assert len(load(tmp_path / "c", "a")[1]["text"]) == 1_000_000


def test_a_file_of_models_is_nothing_to_continue(path):
    save_file(TENSORS, path)
    assert load(path, "this run") is None


def test_a_second_owner_is_told_who_the_first_is(path):
    with sole_owner(path):
        with pytest.raises(InputError) as caught, sole_owner(path):
            pytest.fail("two own the same run")
        sentence = (
            f"this run is still being computed by process {os.getpid()} on {gethostname()}; "
            f"wait for it or stop it, or delete {path.with_suffix('.lock')} if there is no such "
            "process"
        )
        assert str(caught.value) == sentence


def test_an_owner_that_has_gone_leaves_the_run_free(path):
    for _ in range(2):
        with sole_owner(path):
            pass
    with pytest.raises(ZeroDivisionError), sole_owner(path):
        raise ZeroDivisionError
    with sole_owner(path):
        assert load(path, "this run") is not None


@pytest.fixture
def elsewhere(path, monkeypatch):
    """Another machine holds the lock, on a file system whose locks end at the machine.

    Takes whether it gives a sign of life in each nap to come; gives the naps that were taken.
    """
    lock, naps = path.with_suffix(".lock"), []
    lock.write_text("12 on node5")

    def naps_to_come(*signs: bool) -> list[float]:
        left = iter(signs)

        def sleep(seconds: float) -> None:
            naps.append(seconds)
            if next(left):
                os.utime(lock, ns=(0, 1))

        monkeypatch.setattr(checkpoint.time, "sleep", sleep)
        return naps

    return naps_to_come


@pytest.mark.parametrize("signs", [[True], [False, True], [False, False, True]])
def test_an_owner_on_another_machine_is_respected_as_long_as_it_lives(path, elsewhere, signs):
    naps = elsewhere(*signs)
    sentence = "by process 12 on node5; .* or delete .*seed0.lock if"
    with pytest.raises(InputError, match=sentence), sole_owner(path):
        pytest.fail("two own the same run")
    assert naps == [60] * len(signs)
    assert path.with_suffix(".lock").read_text() == "12 on node5"


def test_an_owner_on_another_machine_that_has_died_leaves_the_run_free(path, elsewhere):
    naps = elsewhere(False, False, False)
    with sole_owner(path):
        assert path.with_suffix(".lock").read_text() == f"{os.getpid()} on {gethostname()}"
    assert len(naps) == 3


def test_an_owner_here_that_was_killed_is_not_waited_for(path, elsewhere):
    naps = elsewhere()
    path.with_suffix(".lock").write_text(f"12 on {gethostname()}")
    with sole_owner(path):
        assert naps == []


def test_where_the_file_system_has_no_locks_an_owner_here_is_waited_for_too(
    path, elsewhere, monkeypatch
):
    monkeypatch.setattr(fcntl, "flock", Mock(side_effect=OSError(errno.ENOLCK, "no locks")))
    naps = elsewhere(True)
    path.with_suffix(".lock").write_text(f"12 on {gethostname()}")
    with pytest.raises(InputError, match="by process 12 on "), sole_owner(path):
        pytest.fail("two own the same run")
    assert naps == [60]


def test_an_owner_shows_that_it_lives_and_stops_when_it_ends(path, monkeypatch):
    touched = Event()
    monkeypatch.setattr(checkpoint, "HEARTBEAT", 1e-3)
    monkeypatch.setattr(os, "utime", lambda _: touched.set())
    before = active_count()
    with sole_owner(path):
        assert touched.wait(60)
        assert active_count() == before + 1
    assert path.with_suffix(".lock").read_text() == ""
    assert active_count() == before


def test_an_owner_goes_on_showing_that_it_lives_after_a_failure(path, monkeypatch):
    signs, shown = iter([OSError(errno.EIO, "a server is away")] * 2), Event()

    def utime(_):
        if error := next(signs, None):
            raise error
        shown.set()

    monkeypatch.setattr(checkpoint, "HEARTBEAT", 1e-3)
    monkeypatch.setattr(os, "utime", utime)
    with sole_owner(path):
        assert shown.wait(60)


def test_runs_side_by_side_have_their_own_locks(path):
    with sole_owner(path), sole_owner(path.with_name("seed1.safetensors")):
        pass


def test_an_owner_who_left_no_name_is_still_respected(path):
    with path.with_suffix(".lock").open("a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(InputError, match="by process unknown;"), sole_owner(path):
            pytest.fail("two own the same run")
