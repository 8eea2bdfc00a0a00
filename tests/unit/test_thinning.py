"""Thinned records: fewer numbers, equally many rows, sealed."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from playing import NOTEBOOKS, code_cells
from tiny_results import write_run

from clustered_fl.ledger.reading import load_ledger
from clustered_fl.records import archive, seal
from clustered_fl.records.archive import Key, pack
from clustered_fl.records.reading import (
    load_record,
    load_rounds,
    write_rounds,
)
from clustered_fl.records.relatedness import load_comparisons
from clustered_fl.records.thinning import thinned

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


def test_nothing_changes_where_all_is_kept(folder):
    packed = pack(KEY, "one", folder, "", metrics=[*KEPT, "loss"])
    assert packed.files["rounds.parquet"] == (folder / "rounds.parquet").read_bytes()
    assert json.loads(packed.files["record.json"]) == seal.read_record(folder)


def test_a_record_without_digests_stays_as_it_is(tmp_path):
    write_run(tmp_path / "old")
    packed = pack(KEY, "one", tmp_path / "old", "", metrics=["group"])
    assert packed.files["rounds.parquet"] == (tmp_path / "old/rounds.parquet").read_bytes()


def measured(folder, columns):
    """A sealed grouping with these comparisons."""
    folder.mkdir()
    pd.DataFrame(columns).to_parquet(folder / "comparisons.parquet")
    seal.write(folder, {"groups": [0]}, {"seconds": 2}, ["comparisons.parquet"])
    return pack(Key("grouping", "one", 0), "one", folder, "")


def test_cosines_are_left_out_and_other_measurements_stay(tmp_path):
    whole = {"measure": ["cosine", "labels", "tests"], "first": [0, 1, 2], "value": [0.5, 3.0, 7.0]}
    packed = measured(tmp_path / "whole", whole)
    less = packed._replace(files=thinned(packed.files, cosines=False))
    archive.unpack(less, tmp_path / "there")
    found = load_comparisons(tmp_path / "there")
    pd.testing.assert_frame_equal(found, pd.DataFrame(whole)[1:].reset_index(drop=True))
    assert load_record(tmp_path / "there")["cost"]["seconds"] == 2
    assert thinned(less.files, cosines=False) == less.files


@pytest.mark.parametrize("columns", [{"k": [1, 2]}, {"measure": ["labels"], "value": [1.0]}])
def test_a_grouping_without_cosines_stays_as_it_is(tmp_path, columns):
    packed = measured(tmp_path / "plain", columns)
    assert thinned(packed.files, cosines=False) == packed.files


def test_tables_are_stored_byte_by_byte_with_the_same_numbers(tmp_path):
    whole = {"measure": ["cosine", "labels", "tests"], "first": [0, 1, 2], "value": [0.1, 0.2, 7.0]}
    small = measured(tmp_path / "whole", whole)
    given = seal.contents(tmp_path / "whole", set())
    archive.unpack(small, tmp_path / "there")
    found = load_comparisons(tmp_path / "there")
    pd.testing.assert_frame_equal(found, pd.DataFrame(whole), check_exact=True)
    assert load_record(tmp_path / "there")["cost"]["seconds"] == 2
    assert thinned(small.files) == small.files == thinned(given) != given


def test_random_numbers_take_less_byte_by_byte(tmp_path):
    values = np.random.default_rng(0).uniform(0.5, 1, 5000).tolist()
    packed = measured(tmp_path / "whole", {"measure": ["loss"] * 5000, "value": values})
    given = seal.contents(tmp_path / "whole", set())
    sizes = []
    for files in (given, packed.files):
        archive.write(tmp_path / "archive", [packed._replace(files=files)])
        sizes.append((tmp_path / "archive").stat().st_size)
    assert sizes[1] < 0.95 * sizes[0]


def test_measurements_that_are_not_thinned_keep_their_numbers(folder, tmp_path):
    archive.unpack(pack(KEY, "one", folder, ""), tmp_path / "there")
    given, found = (
        pd.read_parquet(each / "rounds.parquet") for each in (folder, tmp_path / "there")
    )
    pd.testing.assert_frame_equal(found, given, check_exact=True)


def test_cosines_that_a_notebook_reads_are_kept():
    ledger = load_ledger(Path(__file__).parents[2] / "config/papers/repa.yaml")
    needed, reading = set(), ("likeness.by_seed", "correlation.over_rounds", "profiles.pairwise")
    for artefact in ledger.artefacts.values():
        code = "".join(cell["source"] for cell in code_cells(NOTEBOOKS / artefact.notebook))
        if any(name in code for name in reading):
            # Of the grouping "sizes", only numbers of test images are read.
            needed |= {*artefact.groupings} - {artefact.parameters.get("sizes")}
    assert needed == {name for name, each in ledger.groupings.items() if each.cosines}
