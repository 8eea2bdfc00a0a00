"""Files are whole or absent, and what cannot be read or written is told in one sentence."""

import errno
import json
import subprocess

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
    replacing,
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
