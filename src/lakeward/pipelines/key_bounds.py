"""The least and the greatest key of rows on their way to an arm: no row before outside of them can have one of them."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from lakeward.types.quoting import duckdb_name
from lakeward.types.schema import Schema

_COUNTED = ("int", "long")
"""Kinds of columns by whose bounds storage leaves rows out before they are read."""


class KeyBounds:
    """Looks at the first column of the primary key, if storage can make use of its bounds.

    Args:
        schema: of the rows.
    """

    def __init__(self, schema: Schema) -> None:
        first = schema.primary_key[0] if schema.primary_key else None
        self._column = first if first is not None and schema.column(first).type.kind in _COUNTED else None
        self._low: int | None = None
        self._high: int | None = None

    def over(self, rows: pa.RecordBatchReader) -> pa.RecordBatchReader:
        """Return the same stream; when it is read to the end, the bounds are those of all its rows."""
        column = self._column
        if column is None:
            return rows

        def looked_at() -> Iterator[pa.RecordBatch]:
            for batch in rows:
                found = pc.min_max(batch.column(column)).as_py()
                if found["min"] is not None:
                    self._low = found["min"] if self._low is None else min(self._low, found["min"])
                    self._high = found["max"] if self._high is None else max(self._high, found["max"])
                yield batch

        return pa.RecordBatchReader.from_batches(rows.schema, looked_at())

    @property
    def where(self) -> str | None:
        """A filter of the rows that can have one of the keys; None: any can."""
        if self._column is None or self._low is None:
            return None
        name = duckdb_name(self._column)
        return f"{name} >= {self._low} AND {name} <= {self._high}"
