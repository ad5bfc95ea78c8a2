"""Rows that were in a table before it came under a dataset, and have no identity columns: theirs is made when reading.

A row's `__row_id` and `__row_index` are its place among all rows of the snapshot, files in the order in which they were
added. The snapshot never changes, so each reading finds the same; and what another engine appends comes after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate
from typing import Any

from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.types import IcebergType, LongType, NestedField, TimestamptzType

from lakeward.storage.arms.iceberg.trouble import settle
from lakeward.types.schema import CREATED_AT, IDENTITY_COLUMNS, ROW_ID, ROW_INDEX

FIRST_VERSION = 1
"""What such rows say they were written by: the version that they came with, or one before that."""


ADOPTED_AT = "lakeward.adopted-at"
"""In the table's properties: the `__created_at` of rows that were there, in milliseconds since 1970."""


class Unnumbered(Table):
    """A table under the columns of a snapshot that has no identity columns."""

    snapshot: Snapshot

    @classmethod
    def of(cls, table: Table, snapshot: Snapshot) -> Unnumbered:
        """Return a table that is under the columns of the snapshot already."""
        made = cls(table.name(), table.metadata, table.metadata_location, table.io, table.catalog, table.config)
        made.snapshot = snapshot
        return made

    @cached_property
    def first_rows(self) -> dict[str, int]:
        """The number of rows before each data file, by its location."""
        found = sorted((order, path, rows) for order, path, rows in _files(self.snapshot, self.io))
        starts = accumulate((rows for _, _, rows in found), initial=0)
        return {path: start for (_, path, _), start in zip(found, starts, strict=False)}

    @cached_property
    def numbers(self) -> int:
        """How many numbers its rows take, deleted ones included: the next row's."""
        return sum(rows for _, _, rows in _files(self.snapshot, self.io))

    def expression(self, name: str, files: Sequence[str]) -> str:
        """Return what DuckDB makes an identity column of, with `t` for the rows of these files."""
        if name in (ROW_ID, ROW_INDEX):
            starts = [self.first_rows[file] for file in files]
            return f"CAST({starts} AS BIGINT[])[CAST(t.file_index AS BIGINT) + 1] + t.file_row_number"
        if name == CREATED_AT:
            # One for all, so that rows are the same in a later snapshot of another engine, which has none of its own.
            moment = int(self.properties.get(ADOPTED_AT, self.snapshot.timestamp_ms))
            return f"make_timestamptz({moment * 1000})"
        return f"CAST({FIRST_VERSION} AS BIGINT)"


def lacks_identity(schema: Schema) -> bool:
    """Say whether a table's columns hold no identity columns."""
    return not any(field.name in IDENTITY_COLUMNS for field in schema.fields)


def as_first_written(schema: Schema) -> Schema:
    """Return a table's columns as they will be when its dataset is first written: with the identity columns."""
    if not lacks_identity(schema):
        return schema
    added = [
        NestedField(schema.highest_field_id + number, name, _kind(name), required=False)
        for number, name in enumerate(IDENTITY_COLUMNS, start=1)
    ]
    return Schema(*schema.fields, *added, schema_id=schema.schema_id)


def with_identity_columns(load: Any, what: str) -> Table:
    """Add the identity columns to a table where they are missing, in one commit of its metadata; return it.

    Rows that are there have nulls in them, and are read as before: under the columns that they were written with.

    Args:
        load: loads the table anew.
        what: names the dataset in errors.
    """

    def attempt() -> Table:
        loaded: Table = load()
        if lacks_identity(loaded.schema()):
            with loaded.update_schema() as update:
                for name in IDENTITY_COLUMNS:
                    update.add_column(name, _kind(name))
            loaded = load()
        return loaded

    return settle(what, attempt)


def _kind(name: str) -> IcebergType:
    return TimestamptzType() if name == CREATED_AT else LongType()


def _files(snapshot: Snapshot, io: Any) -> list[tuple[int, str, int]]:
    """Return of each data file when it was added, its location and its number of rows."""
    return [
        (entry.sequence_number or 0, entry.data_file.file_path, entry.data_file.record_count)
        for manifest in snapshot.manifests(io)
        if manifest.content == 0
        for entry in manifest.fetch_manifest_entry(io, discard_deleted=True)
    ]
