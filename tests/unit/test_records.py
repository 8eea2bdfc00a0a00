"""A record is read as it was written; its bytes depend on nothing but its content."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet
from safetensors.numpy import save_file

from clustered_fl.errors import InputError
from clustered_fl.files import write_json
from clustered_fl.records import reading as records
from clustered_fl.records import seal

ROWS = [
    (0, "client", 3, "accuracy", 0.125),
    (0, "group", 0, "gap_update", -0.5),
    (1, "client", 3, "loss", float("nan")),
]
ROW = st.tuples(
    st.integers(0, 2**31 - 1),
    st.sampled_from(["run", "group", "client"]),
    st.integers(0, 2**31 - 1),
    st.text(max_size=5),
    st.floats(),
)


@settings(max_examples=30)
@given(rows=st.lists(ROW, max_size=5))
def test_measurements_survive_writing_and_reading(tmp_path, rows):
    records.write_rounds(tmp_path / records.ROUNDS, rows)
    seal.write(tmp_path, {}, {}, [records.ROUNDS])
    frame = records.load_rounds(tmp_path)
    assert list(frame.columns) == ["round", "scope", "member", "metric", "value"]
    found = list(frame.itertuples(index=False, name=None))
    assert [row[:4] for row in found] == [row[:4] for row in rows]
    np.testing.assert_array_equal([row[4] for row in found], [row[4] for row in rows])


@pytest.mark.parametrize("rows", [ROWS, []])
def test_columns_have_the_same_types_with_and_without_rows(tmp_path, rows):
    records.write_rounds(tmp_path / records.ROUNDS, rows)
    schema = parquet.read_schema(tmp_path / records.ROUNDS)
    assert schema.names == ["round", "scope", "member", "metric", "value"]
    assert schema.types == [pa.int32(), pa.string(), pa.int32(), pa.string(), pa.float64()]


def test_equal_measurements_are_equal_bytes(tmp_path):
    for name in "ab":
        records.write_rounds(tmp_path / name, ROWS)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_row_that_is_no_measurement_is_refused_and_leaves_no_file(tmp_path):
    with pytest.raises(pa.ArrowException):
        records.write_rounds(tmp_path / records.ROUNDS, [(0, "client", 1, "accuracy", "high")])
    assert list(tmp_path.iterdir()) == []


def test_a_record_is_shown_with_its_cost(tmp_path):
    """This one was published before there were digests."""
    write_json(tmp_path / records.RECORD, {"rounds": 3})
    write_json(tmp_path / records.COST, {"seconds": 1.5})
    assert records.load_record(tmp_path) == {"rounds": 3, "cost": {"seconds": 1.5}}


def test_models_come_by_name(tmp_path):
    save_file({"node0.model": np.ones(3, dtype=np.float32)}, tmp_path / records.MODELS)
    seal.write(tmp_path, {}, {}, [records.MODELS])
    assert records.load_models(tmp_path)["node0.model"].tolist() == [1, 1, 1]


@pytest.mark.parametrize("load", [records.load_record, records.load_rounds])
def test_a_run_that_left_nothing_is_one_sentence(tmp_path, load):
    with pytest.raises(InputError, match="cannot read .*(record.json|rounds.parquet)"):
        load(tmp_path)
