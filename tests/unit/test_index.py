"""The index of records: one table that says which there are and where."""

from pathlib import Path

import pytest
import tiny_records as tiny

from clustered_fl.errors import InputError
from clustered_fl.records import index

ROWS = [
    ("run", "sweep", "sweep_1", 0, "runs/sweep_1/seed0"),
    ("run", "sweep", "sweep_1", 1, "runs/sweep_1/seed1"),
    ("run", "sweep", "sweep_2", 0, "runs/sweep_2/seed0"),
    ("run", "one", "one", 1, "runs/one/seed1"),
    ("grouping", "one", "one", 0, "groupings/one/seed0"),
    ("study", "toy", "toy", 0, "studies/toy"),
]
RECORDS = index.build(ROWS)


def places(records) -> list[str]:
    return records["folder"].tolist()


NAMES = [("run", name, name, 0, f"runs/{name}") for name in ("NA", "null", "nan", "None")]
NUMBERS = [("run", name, name, 0, name) for name in ("10", "1e3", "007")]


@pytest.mark.parametrize("rows", [ROWS, [], NAMES, NUMBERS])
def test_an_index_is_read_as_it_was_written(tmp_path, rows):
    index.write(index.build(rows), tmp_path / "records.csv")
    found = index.read(tmp_path / "records.csv")
    assert list(found.columns) == list(index.COLUMNS)
    assert list(found.itertuples(index=False, name=None)) == rows
    assert list(index.each(found)) == [(row[2], row[3], Path(row[4])) for row in rows]


def test_an_absent_index_is_one_sentence(tmp_path):
    with pytest.raises(InputError, match="cannot read the index of records .*absent.csv"):
        index.read(tmp_path / "absent.csv")


@pytest.mark.parametrize(
    ("entries", "rows"),
    [
        (["one", "sweep"], [3, 0, 1, 2]),
        (["sweep", "one"], [0, 1, 2, 3]),
        (["sweep"], [0, 1, 2]),
        ([], [0, 1, 2, 3]),
        (["toy"], []),
    ],
)
def test_entries_are_chosen_in_the_order_in_which_they_are_named(entries, rows):
    """With all members of a sweep; none named means all of the kind."""
    assert places(index.chosen(RECORDS, "run", *entries)) == [ROWS[row][-1] for row in rows]


def test_kinds_are_kept_apart_where_names_are_equal():
    assert places(index.chosen(RECORDS, "grouping", "one")) == ["groupings/one/seed0"]
    assert index.folder(RECORDS, "grouping", "one") == Path("groupings/one/seed0")
    assert index.folder(RECORDS, "run", "one") == Path("runs/one/seed1")


def test_a_record_is_found_by_name_and_seed():
    assert index.folder(RECORDS, "run", "sweep_1") == Path("runs/sweep_1/seed0")
    assert index.folder(RECORDS, "run", "sweep_1", 1) == Path("runs/sweep_1/seed1")


@pytest.mark.parametrize(
    ("name", "seed", "what"),
    [("sweep", None, "run sweep"), ("one", 0, "run one, seed 0"), ("toy", None, "run toy")],
)
def test_a_record_that_is_not_there_is_one_sentence(name, seed, what):
    with pytest.raises(InputError, match=f"^there is no record of {what}; it was not computed$"):
        index.folder(RECORDS, "run", name, seed)


def test_records_are_loaded_in_the_order_of_the_index(tmp_path):
    names = ("second", "first")
    folders = {name: {0: tiny.write(tmp_path / name, {"rounds": name}, [])} for name in names}
    found = index.loaded(tiny.runs(folders))
    assert [record["rounds"] for record in found] == ["second", "first"]
    assert found[0]["cost"] == {"seconds": 1.0}
