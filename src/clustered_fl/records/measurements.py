"""Measurements of a run as columns: 18 bytes per row, while a tuple takes two hundred."""

from collections.abc import Iterable
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

Row = tuple[int, str, int, str, float]
"""One measurement: round, scope ("client", "newcomer" or "group"), member, metric, value."""

_INT, _TEXT, _NUMBER = pa.int32(), pa.string(), pa.float64()
_KINDS = {"round": _INT, "scope": _TEXT, "member": _INT, "metric": _TEXT, "value": _NUMBER}
SCHEMA = pa.schema(_KINDS)
_NAMED = pa.dictionary(pa.int8(), _TEXT)
_HELD = pa.schema({name: _NAMED if kind == _TEXT else kind for name, kind in _KINDS.items()})


class Measurements:
    """The rows of a run in the order of measurement."""

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        self._parts = [_HELD.empty_table()]
        self += rows

    def __iadd__(self, rows: Iterable[Row]) -> Self:
        """Add rows; pyarrow raises an error for invalid ones."""
        if rows := list(rows):
            pairs = zip(zip(*rows, strict=True), _HELD.types, strict=True)
            arrays = [pa.array(column, kind) for column, kind in pairs]
            self._parts.append(pa.Table.from_arrays(arrays, schema=_HELD))
        return self

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def table(self) -> pa.Table:
        """All rows, with texts instead of codes."""
        return pa.concat_tables([part.cast(SCHEMA) for part in self._parts]).combine_chunks()

    def last(self, metric: str) -> np.ndarray:
        """Clients' values of a metric in the last round in which it was measured."""
        for part in reversed(self._parts):
            own = pc.and_(pc.equal(part["scope"], "client"), pc.equal(part["metric"], metric))
            if len(found := part.filter(own)):
                at_end = pc.equal(found["round"], pc.max(found["round"]))
                return found.filter(at_end)["value"].to_numpy()
        return np.empty(0)

    def packed(self) -> np.ndarray:
        """All rows as the bytes of a parquet file, uint8."""
        sink = pa.BufferOutputStream()
        parquet.write_table(self.table(), sink)
        return np.frombuffer(sink.getvalue(), np.uint8)

    @classmethod
    def unpacked(cls, content: np.ndarray) -> Self:
        """The inverse of `packed`."""
        found = cls()
        found._parts.append(parquet.read_table(pa.BufferReader(content)).cast(_HELD))
        return found
