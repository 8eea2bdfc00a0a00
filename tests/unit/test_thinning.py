"""Thinned records: fewer numbers, equally many rows, sealed."""

import json

import numpy as np
import pandas as pd
import pytest
from tiny_results import write_run

from clustered_fl.records import archive, seal
from clustered_fl.records.archive import Key, pack
from clustered_fl.records.reading import (
    load_record,
    load_rounds,
    write_rounds,
)

KEY = Key("run", "one", 0)
ROWS = [
    (round_, "client", client, metric, float(10 * round_ + client))
    for round_ in range(4)
    for metric in ("accuracy", "loss", "group")
    for client in range(3)
    if metric == "accuracy" or round_ < 3
]
KEPT = ["accuracy", "group"]


@pytest.fixture
def folder(tmp_path):
    """A sealed run of three rounds, with a test after the last one."""
    folder = tmp_path / "run"
    folder.mkdir()
    write_rounds(folder / "rounds.parquet", ROWS)
    (folder / "models.safetensors").write_bytes(b"learnt")
    seal.write(folder, {"groups": [0]}, {"seconds": 2}, ["rounds.parquet", "models.safetensors"])
    return folder


@pytest.fixture
def restored(folder, tmp_path):
    """The record after it went through an archive."""
    archive.unpack(pack(KEY, "one", folder, "", metrics=KEPT), tmp_path / "there")
    return tmp_path / "there"


def test_values_of_other_metrics_are_kept_for_their_last_round_only(folder, restored):
    whole, thin = load_rounds(folder), load_rounds(restored)
    pd.testing.assert_frame_equal(thin.drop(columns="value"), whole.drop(columns="value"))
    dropped = (whole["metric"] == "loss") & (whole["round"] < 2)
    assert np.array_equal(thin["value"].isna(), dropped)
    assert thin["value"][~dropped].equals(whole["value"][~dropped])


def test_what_comes_out_is_whole(folder, restored):
    found, own = load_record(restored), load_record(folder)
    assert (found["groups"], found["cost"]["seconds"]) == ([0], 2)
    assert found["digest"] != own["digest"]
    assert found["files"].keys() == {"rounds.parquet"}


def test_thinning_again_changes_nothing(folder, restored):
    packed = pack(KEY, "one", restored, "", metrics=KEPT)
    assert packed == pack(KEY, "one", folder, "", metrics=KEPT)


@pytest.mark.parametrize("metrics", [[], [*KEPT, "loss"]])
def test_nothing_changes_where_all_is_kept(folder, metrics):
    packed = pack(KEY, "one", folder, "", metrics=metrics)
    assert packed.files["rounds.parquet"] == (folder / "rounds.parquet").read_bytes()
    assert json.loads(packed.files["record.json"]) == seal.read_record(folder)


def test_a_record_without_digests_stays_as_it_is(tmp_path):
    write_run(tmp_path / "old")
    packed = pack(KEY, "one", tmp_path / "old", "", metrics=["group"])
    assert packed.files["rounds.parquet"] == (tmp_path / "old/rounds.parquet").read_bytes()
