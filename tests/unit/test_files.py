"""Files are whole or absent, and what cannot be read or written is reported in one sentence."""

import errno
import json
import shutil
import subprocess
import sys
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save_file

from clustered_fl.errors import InputError
from clustered_fl.files import (
    content_digest,
    digest,
    read_json,
    recover,
    replacing,
    replacing_folder,
    require_sum,
    set_aside,
    write_json,
    write_sum,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def test_replacing_makes_folders_and_leaves_only_the_file(tmp_path):
    path = tmp_path / "new" / "folder" / "file.txt"
    with replacing(path) as beside:
        beside.write_text("whole")
        assert not path.exists()
    assert path.read_text() == "whole"
    assert [entry.name for entry in path.parent.iterdir()] == ["file.txt"]


def test_a_failure_in_the_block_leaves_what_was_there(tmp_path):
    path = tmp_path / "file.txt"
    path.write_text("before")
    with pytest.raises(ZeroDivisionError), replacing(path) as beside:
        beside.write_text("half")
        raise ZeroDivisionError
    assert path.read_text() == "before"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file.txt"]


def test_a_full_disk_is_one_sentence_that_names_the_file(tmp_path):
    path = tmp_path / "file.txt"
    with pytest.raises(InputError, match="file.txt: No space left"), replacing(path) as beside:
        beside.write_text("half")
        raise OSError(errno.ENOSPC, "No space left on device")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_a_file_is_one_sentence(tmp_path):
    (tmp_path / "taken").write_text("")
    with pytest.raises(InputError, match="cannot write .*taken"):
        write_json(tmp_path / "taken" / "file.json", {})


# ---- Folders -------------------------------------------------------------------------------------

# Replaces the folder in a process that dies, as by `kill -9`, before its n-th change on the disk.
KILLED = """
import os, sys
from pathlib import Path
from clustered_fl.files import replacing_folder

folder, left = Path(sys.argv[1]), int(sys.argv[2])
CHANGES = {"os.mkdir", "os.rename", "os.remove", "os.rmdir"}

def die(event, arguments):
    global left
    if event in CHANGES or (event == "open" and "w" in str(arguments[1])):
        left -= 1
        if left < 0:
            os._exit(9)

sys.addaudithook(die)
with replacing_folder(folder) as beside:
    (beside / "inner").mkdir()
    for name in ("a", "inner/b", "new"):
        (beside / name).write_text("new")
"""
OLD = {"a": "old", "inner/b": "old", "stale": "old"}
NEW = {"a": "new", "inner/b": "new", "new": "new"}


def written(folder) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_text() for path in files}


def killed_after(changes: int, folder) -> bool:
    """Whether the process that replaces an old folder died before it was done."""
    (folder / "inner").mkdir(parents=True)
    for name, text in OLD.items():
        (folder / name).write_text(text)
    command = [sys.executable, "-c", KILLED, str(folder), str(changes)]
    code = subprocess.run(command).returncode
    assert code in (0, 9)
    return code == 9


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory):
    """One folder per step of its replacement, at which the process died."""
    place = tmp_path_factory.mktemp("interrupted")
    steps = []
    while killed_after(len(steps), place / str(len(steps)) / "folder"):
        steps.append(place / str(len(steps)) / "folder")
    return steps


def test_a_folder_is_the_old_or_the_new_one_wherever_its_replacement_dies(interrupted):
    found = []
    for folder in interrupted:
        before = written(folder) if folder.exists() else None
        recover(folder)
        after = written(folder)
        assert before in (None, after)
        assert not (folder.parent / ".folder.former").exists()
        found.append((before is None, after))
    # Before, while it is set aside, and after: each was seen.
    assert [step for step, _ in groupby(found)] == [(False, OLD), (True, OLD), (False, NEW)]


def test_the_next_replacement_clears_what_an_interrupted_one_left(interrupted):
    for folder in interrupted:
        with replacing_folder(folder) as beside:
            assert list(beside.iterdir()) == []
            (beside / "a").write_text("newer")
        assert written(folder.parent) == {"folder/a": "newer"}


def test_an_empty_folder_in_its_place_does_not_hide_the_former_one(tmp_path):
    (tmp_path / ".folder.former").mkdir()
    (tmp_path / ".folder.former" / "a").write_text("old")
    (tmp_path / "folder").mkdir()
    recover(tmp_path / "folder")
    assert written(tmp_path) == {"folder/a": "old"}


def test_a_failure_leaves_the_former_folder(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a").write_text("old")
    with pytest.raises(ZeroDivisionError), replacing_folder(tmp_path / "folder") as beside:
        (beside / "a").write_text("new")
        raise ZeroDivisionError
    assert written(tmp_path) == {"folder/a": "old"}


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path):
    (tmp_path / "taken").write_text("")
    with (
        pytest.raises(InputError, match="cannot write .*taken/folder: "),
        replacing_folder(tmp_path / "taken" / "folder"),
    ):
        pass


def test_a_file_that_the_new_folder_is_made_from_is_named_where_it_cannot_be_read(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    for out in (tmp_path / "out", Path("out")):
        for absent in (tmp_path / "absent.csv", Path("absent.csv"), out / "absent.csv"):
            with (
                pytest.raises(InputError, match=f"^cannot read {absent}: No such file or dir"),
                replacing_folder(out) as beside,
            ):
                shutil.copyfile(absent, beside / "copy.csv")


def test_a_new_folder_that_cannot_be_filled_is_not_called_unreadable(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for out in (tmp_path / "out", Path("out")):
        with (
            pytest.raises(InputError, match=f"^cannot write {out}: No such file or directory$"),
            replacing_folder(out) as beside,
        ):
            (beside.absolute() / "inner" / "a").write_text("new")


def test_a_folder_that_cannot_be_copied_whole_is_one_sentence(tmp_path):
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "a").symlink_to(tmp_path / "absent")
    with (
        pytest.raises(InputError, match="^cannot write .*/out: [^(]*No such file.*/source/a'$"),
        replacing_folder(tmp_path / "out") as beside,
    ):
        shutil.copytree(tmp_path / "source", beside, dirs_exist_ok=True)
    with (
        pytest.raises(InputError, match="^cannot write .*/out: .* are the same file$"),
        replacing_folder(tmp_path / "out") as beside,
    ):
        (beside / "a").touch()
        shutil.copyfile(beside / "a", beside / "a")


@given(content=JSON)
def test_json_survives_writing_and_reading(tmp_path, content):
    path = tmp_path / "content.json"
    write_json(path, content)
    assert read_json(path) == content


@pytest.mark.parametrize("content", [b"", b"{", b"not json", b"\xff\xfe"])
def test_broken_json_is_one_sentence_that_names_the_file(tmp_path, content):
    path = tmp_path / "content.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match="cannot read .*content.json"):
        read_json(path)


def test_absent_json_is_one_sentence_that_names_the_file(tmp_path):
    with pytest.raises(InputError, match="cannot read .*absent.json"):
        read_json(tmp_path / "absent.json")


@given(content=st.dictionaries(st.text(), JSON, max_size=4))
def test_digest_ignores_the_order_of_keys(content):
    assert digest(dict(reversed(content.items()))) == digest(content)
    assert len(digest(content)) == 16


@given(first=JSON, second=JSON)
def test_digest_tells_different_contents_apart(first, second):
    same = json.dumps(first, sort_keys=True) == json.dumps(second, sort_keys=True)
    assert (digest(first) == digest(second)) is same


def test_a_file_has_the_mode_of_any_other_whatever_writes_it(tmp_path):
    (tmp_path / "any").touch()
    with replacing(tmp_path / "tensors") as beside:
        save_file({"x": np.zeros(3)}, beside)
    assert (tmp_path / "tensors").stat().st_mode == (tmp_path / "any").stat().st_mode


ARRAYS = {"x": np.arange(6.0).reshape(2, 3), "none": np.empty(0)}


@pytest.mark.parametrize(
    ("arrays", "about"),
    [
        (ARRAYS | {"x": ARRAYS["x"] + np.eye(2, 3)}, "about"),
        (ARRAYS | {"x": ARRAYS["x"].reshape(3, 2)}, "about"),
        (ARRAYS | {"x": ARRAYS["x"].view(np.int64)}, "about"),
        ({"y": ARRAYS["x"], "none": ARRAYS["none"]}, "about"),
        ({"x": ARRAYS["x"]}, "about"),
        (ARRAYS, "other"),
    ],
    ids=["value", "shape", "type", "name", "absent", "about"],
)
def test_digest_of_arrays_notices(arrays, about):
    assert content_digest(arrays, about) != content_digest(ARRAYS, "about")


def test_digest_of_arrays_ignores_order_and_layout():
    turned = {"none": ARRAYS["none"], "x": np.asfortranarray(ARRAYS["x"])}
    assert content_digest(turned, {}) == content_digest(ARRAYS, {})


def test_a_sum_is_that_of_sha256sum_and_is_required_where_it_is(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("a,b\n")
    require_sum(path)
    write_sum(path)
    require_sum(path)
    subprocess.run(["sha256sum", "--check", "table.csv.sha256"], check=True, cwd=tmp_path)
    path.write_text("a,c\n")
    with pytest.raises(InputError, match="table.csv is damaged .* is now table.csv.damaged: the"):
        require_sum(path)
    assert not path.exists()


def test_a_folder_is_never_set_aside(tmp_path):
    assert "delete" in str(set_aside(tmp_path, "it is a folder"))
    assert tmp_path.is_dir()
