"""The rows of another engine's snapshot: whether they are ours, only compacted, and how they differ from ours if not.

It is the rows that are compared, identity columns included: what an engine calls its operation, or counts in a summary,
proves nothing.
"""

from __future__ import annotations

from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.table import Table

from lakeward.errors import DataError
from lakeward.storage.arm import Scan
from lakeward.storage.arms.iceberg.field_ids import check_field_ids
from lakeward.storage.arms.iceberg.foreign import descends, has_columns_of_table
from lakeward.storage.arms.iceberg.scans import FileScan, as_written, plan
from lakeward.storage.arms.iceberg.trouble import catalog_errors
from lakeward.storage.arms.iceberg.unnumbered import lacks_identity
from lakeward.storage.duck import Duck
from lakeward.storage.filters import quote_identifier, quote_list
from lakeward.storage.foreign_head import ForeignHead, Survey
from lakeward.storage.identity import IDENTITY_FIELDS, with_identity
from lakeward.storage.table import TableRef
from lakeward.types.digest import EMPTY, Digest, duckdb_digest_sql, row_hash_duckdb
from lakeward.types.logical import simple
from lakeward.types.schema import CREATED_AT, IDENTITY_COLUMNS, ROW_ID, ROW_INDEX, VERSION, Column, Schema
from lakeward.types.table import arrow_schema

LARGEST = 2**62
"""No id or position of ours comes near it. One that does would leave none for the rows after it."""

_NULLS = " OR ".join(f"{name} IS NULL" for name in IDENTITY_COLUMNS)
_OUT_OF_RANGE = " OR ".join(f"{name} NOT BETWEEN 0 AND {LARGEST}" for name in (ROW_ID, ROW_INDEX))


class ForeignRows:
    """Compares the rows of a foreign snapshot with those of ours, in DuckDB."""

    def __init__(self, duck: Duck) -> None:
        self._duck = duck

    def compaction(self, loaded: Table, table: TableRef, ours: int, head: ForeignHead) -> Digest | None:
        """Return the digest of the business columns if a later snapshot has exactly the rows of ours, else None.

        They are counted first, so that a foreign append or delete costs no reading of values.
        """
        if head.columns or head.snapshot is None or not descends(loaded, head.snapshot, ours):
            return None
        if not has_columns_of_table(loaded, head.snapshot):
            return None
        whole = _with_identity(table.schema)
        pair = (head.snapshot, ours)
        try:
            if len({self.count(loaded, table, each) for each in pair}) > 1:
                return None
            if len({self._digest(loaded, table, each, whole) for each in pair}) > 1:
                return None
            return self.digest(loaded, table, head.snapshot)
        except DataError:
            return None

    def digest(self, loaded: Table, table: TableRef, snapshot: int) -> Digest:
        """Return the digest of a snapshot's business columns."""
        return self._digest(loaded, table, snapshot, table.schema)

    def survey(
        self, loaded: Table, table: TableRef, ours: int, theirs: int, version: int, next_ids: tuple[int, int]
    ) -> Survey:
        """Compare a foreign snapshot with ours, row by row.

        Args:
            loaded: the table.
            table: the dataset.
            ours: our snapshot; if that is gone, every row counts as new.
            theirs: the foreign one.
            version: the one that it would become.
            next_ids: the `__row_id` and `__row_index` that our next row would get.

        Raises:
            DataError: the foreign snapshot can't be read, or has a new file without field ids.
        """
        held = self.count(loaded, table, ours)
        classified = self._classified(loaded, table, ours, theirs)
        if classified is None:
            return Survey(0, 0, 0, 0, held, 0, 0, 0, 0, not has_columns_of_table(loaded, theirs), *next_ids)
        aggregates = (
            "count(*), count_if(NOT keeps OR NOT known), count_if(keeps AND known AND NOT same), count_if(same), "
            "count_if(nulls), count_if(repeated AND NOT nulls), "
            f"count_if(NOT nulls AND NOT repeated AND (NOT keeps OR {VERSION} NOT BETWEEN 1 AND {version:d})), "
            f"count_if(keeps AND NOT same AND {VERSION} < {version:d}), "
            f"coalesce(max({ROW_ID}) FILTER (keeps), -1), coalesce(max({ROW_INDEX}) FILTER (keeps), -1)"
        )
        row = self._one(f"SELECT {aggregates} FROM ({classified.sql})", classified)
        # Of no rows at all, DuckDB counts null.
        rows, added, updated, unchanged, nulls, repeated, beyond, unstamped, last_id, last_index = (
            each or 0 for each in row
        )
        if lacks_identity(as_written(loaded, theirs).schema()):
            # What they are numbered by when they are read holds for this snapshot, and not for the next one.
            nulls = rows
        return Survey(
            rows=rows,
            added=added,
            updated=updated,
            unchanged=unchanged,
            deleted=held - updated - unchanged,
            nulls=nulls,
            repeated=repeated,
            beyond=beyond,
            unstamped=unstamped,
            misfit=not has_columns_of_table(loaded, theirs),
            next_row_id=max(next_ids[0], last_id + 1),
            next_row_index=max(next_ids[1], last_index + 1),
        )

    def renumbered(
        self, loaded: Table, table: TableRef, ours: int, theirs: int, numbering: Numbering
    ) -> pa.RecordBatchReader:
        """Stream the rows of a foreign snapshot with sound identity columns, see `Numbering`."""
        target = with_identity(arrow_schema(table.schema))
        classified = self._classified(loaded, table, ours, theirs)
        if classified is None:
            return pa.RecordBatchReader.from_batches(target, iter(()))
        flags = [pa.field("keeps", pa.bool_()), pa.field("same", pa.bool_())]
        nullable = [field.with_nullable(True) for field in IDENTITY_FIELDS]
        source = pa.schema([*arrow_schema(table.schema), *nullable, *flags])
        columns = [f"c{position}" for position in range(len(table.schema.columns))]
        rows = self._duck.stream(
            f"SELECT {quote_list([*columns, *IDENTITY_COLUMNS])}, keeps, same FROM ({classified.sql})",
            source,
            classified.tables,
        )
        return pa.RecordBatchReader.from_batches(target, (numbering.number(batch, target) for batch in rows))

    def _classified(self, loaded: Table, table: TableRef, ours: int, theirs: int) -> FileScan | None:
        """Return SQL that says of each foreign row what it is; None if there are none.

        `known`: a row of ours has its `__row_id`. `same`: and is equal in all columns. `repeated`: another foreign row
        has its `__row_id` and comes first, as the one that is equal to ours does. `keeps`: its identity can stay.
        Business columns are called c0, c1 …, since any name of ours could be one of theirs.

        Raises:
            DataError: a new file has no field ids, and so would have nothing but nulls.
        """
        found = self._scan(loaded, table, theirs, table.schema, "deleted_by_them")
        if found is None:
            return None
        mine = self._scan(loaded, table, ours, table.schema, "deleted_by_us")
        held = {task.file.file_path for task in mine.tasks} if mine is not None else set()
        new = (task.file for task in found.tasks if task.file.file_path not in held)
        with catalog_errors(f"dataset {table.name}"):
            check_field_ids(new, found.store, f"snapshot {theirs} of dataset {table.name}")
        hashed = row_hash_duckdb(_with_identity(table.schema))
        known = "SELECT CAST(0 AS BIGINT) AS id, CAST(0 AS UHUGEINT) AS hash WHERE false"
        if mine is not None:
            known = f"SELECT {ROW_ID} AS id, {hashed} AS hash FROM ({mine.sql})"
        columns = ", ".join(f"{quote_identifier(name)} AS c{at}" for at, name in enumerate(table.schema.names))
        identity = quote_list(IDENTITY_COLUMNS)
        sql = (
            f"WITH ours AS ({known}), found AS (SELECT {columns}, {identity}, {hashed} AS hash FROM ({found.sql})), "
            "paired AS (SELECT found.*, id IS NOT NULL AS known, coalesce(ours.hash = found.hash, false) AS equal "
            f"FROM found LEFT JOIN ours ON id = {ROW_ID}), "
            f"placed AS (SELECT *, ({_NULLS}) AS nulls, coalesce({_OUT_OF_RANGE}, false) AS out_of_range, "
            f"row_number() OVER (PARTITION BY {ROW_ID} ORDER BY equal DESC) > 1 AS repeated FROM paired) "
            "SELECT *, NOT (nulls OR repeated OR out_of_range) AS keeps, equal AND NOT repeated AS same FROM placed"
        )
        return FileScan(sql, found.store, {**found.tables, **(mine.tables if mine is not None else {})})

    def count(self, loaded: Table, table: TableRef, snapshot: int) -> int:
        """Return how many rows a snapshot has."""
        found = self._scan(loaded, table, snapshot, Schema(()), "deleted_rows")
        return 0 if found is None else self._one(f"SELECT count(*) FROM ({found.sql})", found)[0]

    def _digest(self, loaded: Table, table: TableRef, snapshot: int, schema: Schema) -> Digest:
        found = self._scan(loaded, table, snapshot, table.schema, "deleted_rows")
        return EMPTY if found is None else Digest.of_row(self._one(duckdb_digest_sql(schema, found.sql), found))

    def _one(self, sql: str, scan: FileScan) -> tuple[int, ...]:
        with self._duck.session() as connection:
            for name, rows in scan.tables.items():
                connection.register(name, rows)
            row = connection.execute(sql).fetchone()
        assert row is not None, "an aggregate has one row"
        return row

    @staticmethod
    def _scan(loaded: Table, table: TableRef, snapshot: int, columns: Schema, deletes: str) -> FileScan | None:
        """Plan the reading of a whole snapshot, identity columns included; None if it is empty or gone."""
        if loaded.metadata.snapshot_by_id(snapshot) is None:
            return None
        names = {*columns.names, *IDENTITY_COLUMNS}
        try:
            with catalog_errors(f"dataset {table.name}"):
                return plan(loaded, snapshot, table.schema, names, Scan(columns.names), deletes)
        except ValueError as error:
            # Equality deletes, say, which PyIceberg does not read.
            raise DataError(
                f"dataset {table.name}: snapshot {snapshot} of its Iceberg table can't be read: {error}",
                safe="reads stay at the last committed version",
                next_step=f"`lakeward ledger restore {table.name}` brings back ours",
                dataset=table.name,
                snapshot=snapshot,
            ) from error


class Numbering:
    """Gives foreign rows a sound identity.

    A row that is equal to ours keeps all of it. One with an identity that can stay keeps it and gets the new version,
    so that a read since an earlier one finds it. Any other gets a fresh one, as if it had just been added.

    Args:
        row_id, row_index: what the first fresh row gets.
        created_at: the moment of insertion of fresh rows.
        version: the new version.
    """

    def __init__(self, row_id: int, row_index: int, created_at: datetime, version: int) -> None:
        self.row_id = row_id
        self.row_index = row_index
        self._created_at = created_at
        self._version = version

    def number(self, batch: pa.RecordBatch, target: pa.Schema) -> pa.RecordBatch:
        """Return the rows in the target's columns.

        Args:
            batch: business columns, identity columns, and the flags `keeps` and `same`.
            target: business and identity columns.
        """
        *business, row_index, row_id, created_at, version, keeps, same = batch.columns
        fresh = pc.cumulative_sum(pc.invert(keeps).cast(pa.int64()))
        count = fresh[-1].as_py() if batch.num_rows else 0
        identity = {
            ROW_INDEX: pc.if_else(keeps, row_index, pc.add(fresh, self.row_index - 1)),
            ROW_ID: pc.if_else(keeps, row_id, pc.add(fresh, self.row_id - 1)),
            CREATED_AT: pc.if_else(keeps, created_at, pa.scalar(self._created_at, created_at.type)),
            VERSION: pc.if_else(same, version, pa.scalar(self._version, pa.int64())),
        }
        self.row_index += count
        self.row_id += count
        return pa.RecordBatch.from_arrays([*business, *(identity[name] for name in IDENTITY_COLUMNS)], schema=target)


def _with_identity(schema: Schema) -> Schema:
    """Return the columns of a dataset with the identity columns behind them, for hashing whole rows."""
    kinds = {name: "timestamptz" if name == CREATED_AT else "long" for name in IDENTITY_COLUMNS}
    return Schema((*schema.columns, *(Column(name, simple(kind), 0) for name, kind in kinds.items())))
