"""The Postgres arm: rows of all datasets in one multi-version table, as JSON documents.

A row is seen at version v if `base <= version <= v` and (`until` is null or `until > v`); `base` is the last version up
to v that put every row in place anew. So a replace only inserts, and old versions stay readable.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import adbc_driver_manager
import pyarrow as pa
from psycopg import sql

from lakeward.control.ledger import Ledger
from lakeward.control.records import ArmVersion, Claim, Counts
from lakeward.control.retention import Retention
from lakeward.errors import StorageError, UnknownVersion
from lakeward.storage.arm import NEW, OLD, ArmContext, NothingToWrite, Prepared, Scan, StorageArm, WriteTask, replayed
from lakeward.storage.arms.postgres.adbc_pool import AdbcPool
from lakeward.storage.arms.postgres.changes import come_rows, gone_rows
from lakeward.storage.arms.postgres.copy import copy_rows
from lakeward.storage.arms.postgres.digests import digest_of, part_digests_of
from lakeward.storage.arms.postgres.keyed_rows import rows_with_keys
from lakeward.storage.arms.postgres.merge import RowMerge
from lakeward.storage.arms.postgres.receiver import PostgresReceiver
from lakeward.storage.arms.postgres.replay import mark_gone
from lakeward.storage.arms.postgres.seen import in_spans, visible_rows
from lakeward.storage.arms.postgres.upkeep import RowUpkeep
from lakeward.storage.duck import SOURCE, as_schema
from lakeward.storage.extent import Extent
from lakeward.storage.filters import Filter, quote_identifier, quote_list
from lakeward.storage.identity import IDENTITY_FIELDS, IdentityCounter, with_identity
from lakeward.storage.leftovers import Leftover, TidyTask
from lakeward.storage.pump import prefetched
from lakeward.storage.receiving import Receiver
from lakeward.storage.scans import KEYS, with_keys
from lakeward.storage.sides import Difference, Side, StreamedSide
from lakeward.storage.staged_batch import key_columns
from lakeward.storage.table import TableRef
from lakeward.storage.verbs import KEYED
from lakeward.types.digest import Digest
from lakeward.types.jsonb import decode, encode_sql, read_columns, unpacked
from lakeward.types.key_number import key_number_duckdb
from lakeward.types.schema import CREATED_AT, IDENTITY_COLUMNS, ROW_ID, ROW_INDEX, VERSION, Schema
from lakeward.types.table import arrow_schema

LATE_SECONDS = 30.0
"""A stream that is first read later than this after it was opened looks whether its version is still there."""

CHUNK_ROWS, CHUNK_BYTES = 65_536, 32 << 20
"""So many rows are copied in one Postgres transaction, for which the ledger row is locked, or bytes of them."""

_IDENTITY_SQL = {
    ROW_INDEX: sql.SQL("row_index"),
    ROW_ID: sql.SQL("row_id"),
    CREATED_AT: sql.SQL("created_at"),
    VERSION: sql.SQL("coalesce(origin, version)"),
}
_INTEGER = sql.SQL("(document ->> {name})::bigint {operator} {value}")


class PostgresRowsArm(StorageArm):
    """Rows in PostgreSQL, as versioned JSON documents."""

    name = "postgres"
    mirrors = True

    def __init__(self, context: ArmContext) -> None:
        self._database = context.database
        self._readers = AdbcPool(context.database.libpq_url)
        self._ledger = context.ledger
        self._retention = Retention(context.database, context.settings.retained_versions)
        self._duck = context.duck
        self._faults = context.faults

    def prepare(self, task: WriteTask, batches: pa.RecordBatchReader) -> Prepared | NothingToWrite:
        """Insert the rows under the new version, chunk by chunk; no reader of another version sees them."""
        if task.transaction.verb in KEYED:
            return RowMerge(self._database, self._duck, self._faults).prepare(task, batches)
        transaction = task.transaction
        replaces = transaction.verb in ("replace", "copy")
        counter = IdentityCounter(
            0 if replaces else transaction.next_row_index,
            transaction.next_row_id,
            transaction.opened_at,
            transaction.version,
        )
        copied = transaction.verb == "copy"
        rows = batches if copied else _numbered(batches, counter)
        written = self._insert_all(task, self._documents(task, rows, foreign=copied))
        kept = 0 if replaces else transaction.parent_row_count
        deleted = transaction.parent_row_count if transaction.verb == "replace" else 0
        added, unchanged = (0, written) if copied else (written, 0)
        return Prepared(
            counts=Counts(written, added, 0, unchanged, deleted, 0, kept + written),
            next_row_id=transaction.next_row_id if copied else counter.row_id,
            next_row_index=transaction.next_row_index if copied else counter.row_index,
            rebases=replaces or task.parent is None,
            publishes=False,
        )

    def replay(self, task: WriteTask, difference: Difference) -> Prepared:
        """Mark the rows that are gone, in one transaction, and insert those that have come chunk by chunk."""
        if difference.rows_gone:
            mark_gone(self._database, self._duck, task, difference)
            self._faults.at("prepare:marked")
        if difference.rows_come:
            self._insert_all(task, self._documents(task, difference.come(), foreign=True))
        return replayed(task)

    def scan(self, table: TableRef, version: ArmVersion, scan: Scan) -> pa.RecordBatchReader:
        """Stream one version's rows through ADBC, with one cast per column."""
        wanted = table.schema.select(scan.columns)
        identity = IDENTITY_COLUMNS if scan.identity else ()
        target = arrow_schema(wanted)
        target = with_identity(target) if scan.identity else target
        if scan.where is None and scan.keys is None:
            return self._select(table, version, scan.since, wanted, identity, target, None)
        asked = (
            *(scan.where.columns if scan.where else ()),
            *(table.schema.primary_key if scan.keys is not None else ()),
        )
        extra = [name for name in dict.fromkeys(asked) if name not in (*wanted.names, *identity)]
        read = table.schema.select([*wanted.names, *(name for name in extra if name not in IDENTITY_COLUMNS)])
        read_identity = tuple(name for name in IDENTITY_COLUMNS if name in identity or name in extra)
        everything = pa.schema(
            [*arrow_schema(read), *(field for field in IDENTITY_FIELDS if field.name in read_identity)]
        )
        rows = self._select(table, version, scan.since, read, read_identity, everything, scan.where, scan.keys)
        select = quote_list([*wanted.names, *identity])
        conditions = " AND ".join(with_keys(scan, table.schema))
        query = f"SELECT {select} FROM {quote_identifier(SOURCE)} WHERE {conditions}"
        keys = {} if scan.keys is None else {KEYS: scan.keys}
        return self._duck.stream(query, target, {SOURCE: rows, **keys}, scan.where)

    def changes(self, table: TableRef, old: ArmVersion, new: ArmVersion) -> tuple[Side, Side]:
        """Leave out rows that both versions see, by the indexes on `version` and `until`."""

        def side(name: str, rows: sql.Composable) -> Side:
            def opened(columns: Sequence[str]) -> pa.RecordBatchReader:
                business = table.schema.select([column for column in columns if column not in IDENTITY_COLUMNS])
                identity = [field for field in IDENTITY_FIELDS if field.name in columns]
                target = pa.schema([*arrow_schema(business), *identity])
                return self._stream(table, (old, new), rows, business, [field.name for field in identity], target)

            return StreamedSide(name, opened)

        return side(OLD, gone_rows(table, old, new)), side(NEW, come_rows(table, old, new))

    def digest(self, table: TableRef, version: ArmVersion) -> Digest:
        """Compute the digest inside Postgres, by parallel workers where the server has them."""
        return digest_of(self._database, table, visible_rows(table, version, None))

    def part_digests(
        self, table: TableRef, version: ArmVersion, width: int, where: Filter | None = None
    ) -> dict[int, Digest]:
        """Compute them inside Postgres in one pass over the dataset's rows."""
        rows = visible_rows(table, version, None, in_spans(where))
        return part_digests_of(self._database, table, rows, width)

    def receiver(self) -> Receiver:
        """Look ahead with what writes here."""
        return PostgresReceiver(self._database, self._duck)

    def publish(self, table: TableRef, version: ArmVersion) -> None:
        """Do nothing: readers find the version through the ledger."""

    def discard(self, table: TableRef, version: int) -> None:
        """Delete the rows of an aborted version and clear the marks that it set."""
        with self._database.driver() as connection, connection.transaction():
            # Nothing can have replaced rows of a version that never was: the condition lets an index find them.
            connection.execute(
                "DELETE FROM lakeward.dataset_rows WHERE dataset_id = %s AND version = %s AND until IS NULL",
                (table.dataset_id, version),
            )
            connection.execute(
                "UPDATE lakeward.dataset_rows SET until = NULL WHERE dataset_id = %s AND until = %s",
                (table.dataset_id, version),
            )

    def discard_after(self, table: TableRef, newest: int, claim: Claim) -> None:
        """Delete the rows of later versions and clear the marks that they set."""
        with self._database.driver() as connection, connection.transaction():
            if not Ledger.holds(connection, claim):
                return
            connection.execute(
                "DELETE FROM lakeward.dataset_rows WHERE dataset_id = %s AND version > %s AND until IS NULL",
                (table.dataset_id, newest),
            )
            connection.execute(
                "UPDATE lakeward.dataset_rows SET until = NULL WHERE dataset_id = %s AND until > %s AND version <= %s",
                (table.dataset_id, newest, newest),
            )

    def tidy(self, task: TidyTask) -> Iterator[Leftover]:
        """Delete rows that no version sees any more."""
        return RowUpkeep(self._database, self._faults).tidy(task)

    def extent(self, table: TableRef, version: ArmVersion) -> Extent:
        """Count the rows that are kept for older versions, by their index."""
        return Extent(replaced_rows=RowUpkeep(self._database, self._faults).replaced(table.dataset_id))

    def close(self) -> None:
        """Close the connections for reading."""
        self._readers.close()

    def locate(self, table: TableRef, version: ArmVersion) -> dict[str, str]:
        """Say which rows of which table hold the version."""
        return {
            "table": "lakeward.dataset_rows",
            "dataset_id": str(table.dataset_id),
            "versions": f"{version.base_version} to {version.version}",
        }

    def _documents(self, task: WriteTask, rows: pa.RecordBatchReader, *, foreign: bool) -> pa.RecordBatchReader:
        """Turn rows with identity columns into what is copied: a JSON document and the row's own columns.

        Args:
            task: the write.
            rows: business columns with the identity columns behind.
            foreign: they come from another arm, where the version that their identity names wrote them.
        """
        schema = task.table.schema
        key = key_number_duckdb(key_columns(schema)) if schema.primary_key else "CAST(NULL AS BIGINT)"
        documents = self._duck.stream(
            f"SELECT {quote_list(IDENTITY_COLUMNS)}, {key} AS key, {encode_sql(schema)} AS data FROM source",
            pa.schema([*IDENTITY_FIELDS, pa.field("key", pa.int64()), pa.field("data", pa.string(), nullable=False)]),
            {"source": rows},
        )
        fields = [*_ROW_FIELDS, pa.field("origin", pa.int64())] if foreign else _ROW_FIELDS
        dataset_id, version = task.table.dataset_id, task.transaction.version

        def columns() -> Iterator[pa.RecordBatch]:
            for batch in documents:
                index, row_id, created_at, origin, number, data = batch.columns
                constant = [pa.repeat(pa.scalar(value, pa.int64()), batch.num_rows) for value in (dataset_id, version)]
                arrays = [constant[0], row_id, index, constant[1], created_at, number, data, origin]
                yield pa.RecordBatch.from_arrays(arrays[: len(fields)], schema=pa.schema(fields))

        return pa.RecordBatchReader.from_batches(pa.schema(fields), columns())

    def _insert_all(self, task: WriteTask, documents: pa.RecordBatchReader) -> int:
        """Copy a stream of documents, and return how many there were."""
        written = 0
        with prefetched(_chunks(documents)) as chunks:
            for chunk in chunks:
                task.check()
                self._insert(task, chunk)
                written += sum(batch.num_rows for batch in chunk)
                self._faults.at("prepare:chunk")
        return written

    def _insert(self, task: WriteTask, chunk: Sequence[pa.RecordBatch]) -> None:
        """Copy one chunk in one transaction, which nobody can take over while it runs."""
        with self._database.driver() as connection, connection.transaction():
            Ledger.hold(connection, task.transaction)
            table = sql.SQL("lakeward.dataset_rows")
            copy_rows(connection, table, chunk[0].schema, chunk, lambda: self._faults.at("prepare:copy"))

    def _select(
        self,
        table: TableRef,
        version: ArmVersion,
        since: int | None,
        columns: Schema,
        identity: Sequence[str],
        target: pa.Schema,
        wanted: Filter | None,
        keys: pa.Table | None = None,
    ) -> pa.RecordBatchReader:
        conjuncts = wanted.conjuncts if wanted is not None else ()
        where: list[sql.Composable] = [
            _INTEGER.format(
                name=sql.Literal(conjunct.column),
                operator=sql.SQL(conjunct.operator),
                value=sql.Literal(conjunct.value),
            )
            for conjunct in conjuncts
            if conjunct.column not in _IDENTITY_SQL
        ]
        counters = [
            sql.SQL("{} {} {}").format(
                _IDENTITY_SQL[conjunct.column], sql.SQL(conjunct.operator), sql.Literal(conjunct.value)
            )
            for conjunct in conjuncts
            if conjunct.column in _IDENTITY_SQL
        ]
        rows = visible_rows(table, version, since, [*counters, *in_spans(wanted)])
        if keys is not None and since is None and not counters:
            rows = rows_with_keys(self._database, self._duck, table, version, keys)
        return self._stream(table, (version,), rows, columns, identity, target, where)

    def _stream(
        self,
        table: TableRef,
        versions: Sequence[ArmVersion],
        rows: sql.Composable,
        columns: Schema,
        identity: Sequence[str],
        target: pa.Schema,
        where: Sequence[sql.Composable] = (),
    ) -> pa.RecordBatchReader:
        """Stream what a query of `dataset_rows` gives, decoded.

        Args:
            table: the dataset.
            versions: those that the query needs; they must not have expired before it begins.
            rows: the query.
            columns, identity: what to read of its rows.
            target: the Arrow schema of that.
            where: conditions on `document`, each row's JSON.
        """
        select = [
            *([read_columns(columns, columns.names, sql.Identifier("document"))] if columns.columns else []),
            *(_IDENTITY_SQL[name] for name in identity),
        ]
        # A document of more than 2 kB is stored compressed, and every `->>` on it would unpack it again. The quoted
        # offset keeps the planner from copying the unpacking into each of them.
        query = sql.SQL(
            "SELECT {} FROM (SELECT *, {} AS document FROM ({}) AS seen OFFSET '0') AS unpacked WHERE {}"
        ).format(
            sql.SQL(", ").join(select),
            unpacked(sql.Identifier("data")),
            rows,
            sql.SQL(" AND ").join(where or [sql.SQL("true")]),
        )
        width = len(columns.columns)
        resolved = time.monotonic()

        def batches() -> Iterator[pa.RecordBatch]:
            try:
                with self._readers.executed(query.as_string()) as cursor:
                    # What this statement sees, it sees to its end. But was everything still there when it began?
                    if time.monotonic() - resolved > LATE_SECONDS:
                        for version in versions:
                            self._check_not_expired(table, version)
                    for batch in cursor.fetch_record_batch():
                        business = decode(batch.select(range(width)), columns)
                        arrays = [*business.columns, *batch.columns[width:]]
                        yield as_schema(pa.RecordBatch.from_arrays(arrays, names=target.names), target)
            except (adbc_driver_manager.Error, OSError) as error:
                # An OSError is what a broken connection becomes on its way through the Arrow stream.
                raise StorageError(f"dataset {table.name} can't be read: {error}", dataset=table.name) from error
            except StorageError as error:
                # The decoder knows the column and the value, and this place the dataset.
                raise StorageError(
                    f"dataset {table.name}: {error.message}",
                    safe=error.safe,
                    next_step=error.next_step or "read the other columns, or an earlier version",
                    **{**error.fields, "dataset": table.name},
                ) from error

        return pa.RecordBatchReader.from_batches(target, batches())

    def _check_not_expired(self, table: TableRef, version: ArmVersion) -> None:
        """Raise UnknownVersion if the version has expired since it was resolved; its rows may be gone in part."""
        if version.unproved is not None:
            return  # a copy that is being compared; whoever does that keeps it from being removed
        readable = self._ledger.arm_version(table.dataset_id, self.name, version.version) is not None
        if not readable and self._retention.was_committed(table.dataset_id, version.version):
            raise UnknownVersion(
                f"version {version.version} of dataset {table.name} expired before it was read",
                next_step="read soon after you have opened a version, or keep it: Dataset.keep",
                dataset=table.name,
                version=version.version,
            )


_ROW_FIELDS = [
    pa.field("dataset_id", pa.int64(), nullable=False),
    pa.field("row_id", pa.int64(), nullable=False),
    pa.field("row_index", pa.int64(), nullable=False),
    pa.field("version", pa.int64(), nullable=False),
    pa.field("created_at", pa.timestamp("us", "UTC"), nullable=False),
    pa.field("key", pa.int64()),
    pa.field("data", pa.string(), nullable=False),
]


def _numbered(batches: pa.RecordBatchReader, counter: IdentityCounter) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(
        with_identity(batches.schema), (counter.number(batch) for batch in batches)
    )


def _chunks(batches: pa.RecordBatchReader) -> Iterator[list[pa.RecordBatch]]:
    chunk: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        chunk.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
        if rows >= CHUNK_ROWS or size >= CHUNK_BYTES:
            yield chunk
            chunk, rows, size = [], 0, 0
    if chunk:
        yield chunk
