"""The identity columns that arms add to rows, and their Arrow types."""

from __future__ import annotations

from datetime import datetime

import pyarrow as pa

from lakeward.types.schema import CREATED_AT, ROW_ID, ROW_INDEX, VERSION

IDENTITY_FIELDS = (
    pa.field(ROW_INDEX, pa.int64(), nullable=False),
    pa.field(ROW_ID, pa.int64(), nullable=False),
    pa.field(CREATED_AT, pa.timestamp("us", "UTC"), nullable=False),
    pa.field(VERSION, pa.int64(), nullable=False),
)


class IdentityCounter:
    """Numbers new rows of one version: `__row_index` by position, `__row_id` never given before.

    Args:
        row_index: the first row's position.
        row_id: the first row's id.
        created_at: the moment of insertion, by the database's clock.
        version: the version that writes the rows.
    """

    def __init__(self, row_index: int, row_id: int, created_at: datetime, version: int) -> None:
        self.row_index = row_index
        self.row_id = row_id
        self._created_at = pa.scalar(created_at, IDENTITY_FIELDS[2].type)
        self._version = pa.scalar(version, pa.int64())

    def number(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the batch with the identity columns behind its own."""
        rows = batch.num_rows
        columns = [
            *batch.columns,
            pa.arange(self.row_index, self.row_index + rows),
            pa.arange(self.row_id, self.row_id + rows),
            pa.repeat(self._created_at, rows),
            pa.repeat(self._version, rows),
        ]
        self.row_index += rows
        self.row_id += rows
        return pa.RecordBatch.from_arrays(columns, schema=with_identity(batch.schema))


def with_identity(schema: pa.Schema) -> pa.Schema:
    """Return the Arrow schema with the identity columns behind its own."""
    return pa.schema([*schema, *IDENTITY_FIELDS])
