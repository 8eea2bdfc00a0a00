"""Measurements are kept as columns, and no number changes on the way."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clustered_fl.records.measurements import SCHEMA, Measurements

ROW = st.tuples(
    st.integers(0, 2**31 - 1),
    st.sampled_from(["run", "group", "client"]),
    st.integers(0, 2**31 - 1),
    st.sampled_from(["loss", "accuracy", "gap_update"]),
    st.floats(allow_nan=False),
)


@given(parts=st.lists(st.lists(ROW, max_size=4), max_size=4))
def test_rows_come_back_in_their_order(parts):
    found = Measurements()
    for part in parts:
        found += part
    rows = [row for part in parts for row in part]
    assert len(found) == len(rows)
    for each in (found, Measurements.unpacked(found.packed()), Measurements(rows)):
        table = each.table()
        assert table.schema == SCHEMA
        assert list(zip(*(column.to_pylist() for column in table), strict=True)) == rows


def test_added_to_what_was_unpacked_they_are_as_if_never_packed():
    first, more = [(0, "client", 0, "loss", 0.1)], [(1, "group", 2, "size", 3.0)]
    found = Measurements.unpacked(Measurements(first).packed())
    found += more
    assert found.table().equals(Measurements([*first, *more]).table())
    assert bytes(found.packed()) == bytes(Measurements([*first, *more]).packed())


@pytest.mark.parametrize("packed", [False, True])
def test_the_last_values_are_those_of_all_clients_in_the_last_round(packed):
    found = Measurements((0, "client", c, "accuracy", 0.5) for c in range(3))
    found += [(2, "client", c, "accuracy", 0.1 * c) for c in range(3)]
    found += [(2, "newcomer", 3, "accuracy", 0.9), (2, "client", 0, "loss", 7.0)]
    found += [(3, "group", 0, "accuracy", 0.8)]
    found = Measurements.unpacked(found.packed()) if packed else found
    assert found.last("accuracy").tolist() == [0.1 * c for c in range(3)]
    assert found.last("perplexity").tolist() == []


def test_a_row_takes_eighteen_bytes():
    found = Measurements((0, "client", c, "loss", 1.0) for c in range(10_000))
    assert sum(part.nbytes for part in found._parts) < 18.1 * 10_000
    assert np.isfinite(found.last("loss")).all()
