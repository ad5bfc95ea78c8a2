"""The storage layer's own DuckDB: trusted SQL over streams and files, within a memory limit, spilling when it must.

User pipelines do not run here; they run sealed, in `lakeward.compute`.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

import duckdb
import pyarrow as pa

from lakeward.control.db import workspace_closed
from lakeward.errors import Busy, LakewardError, SqlError, StorageError, StorageFull
from lakeward.storage.filters import Filter
from lakeward.storage.remote_files import REMOTE_FILES
from lakeward.storage.settings import StorageSettings
from lakeward.time_limit import TimeLimit

SOURCE = "rows\x01"
"""What a filtered relation is called. No column can have a control character in its name, so none is hidden by it."""

PULL_ROWS = 2_048
"""Rows taken from DuckDB at a time: few, so that wide ones stay small. They are joined again up to a batch."""

WORKING_BYTES = 8 << 20
BATCH_ROWS = 65_536
BATCH_BYTES = 2 << 20
"""Few enough that whoever sends them has something to do soon, and holds little if its client is slow."""

_CORES = os.cpu_count() or 1
_ALL_ROWS = (1 << 63) - 1
_NO_MEMORY = "DuckDB ran out of memory or of space to spill"

_UNITS = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
"""What DuckDB tells sizes in."""

_MEMORY = re.compile(r"^(Out of Memory Error|.*max_temp_directory_size)", re.IGNORECASE)
_DISK_FULL = re.compile(r"no space left|disk quota|file too large", re.IGNORECASE)
_FILES = re.compile(r"^(IO Error|Internal Error|INTERNAL Error|Interrupt|INTERRUPT)", re.IGNORECASE)


class Duck:
    """One DuckDB instance for the process, opened on first use; every read or write gets a connection of its own."""

    def __init__(self, settings: StorageSettings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._instance: duckdb.DuckDBPyConnection | None = None
        self._closed = False
        self._reading = 0

    def connect(self) -> duckdb.DuckDBPyConnection:
        """Return a new connection; the caller closes it."""
        with self._lock:
            if self._closed:
                raise workspace_closed()
            if self._instance is None:
                self._settings.scratch.mkdir(parents=True, exist_ok=True)
                self._instance = duckdb.connect(
                    config={
                        "memory_limit": self._settings.memory_limit,
                        "temp_directory": str(self._settings.scratch),
                        "autoinstall_known_extensions": False,
                        "autoload_known_extensions": False,
                        "python_enable_replacements": False,
                    }
                )
                self._instance.register_filesystem(REMOTE_FILES)
            connection = self._instance.cursor()
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute("SET arrow_lossless_conversion = true")
        return connection

    @contextmanager
    def session(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection for the length of a block, with DuckDB's errors under our names."""
        with named_errors(), self.connect() as connection:
            yield connection

    def close(self) -> None:
        """Close the instance and with it everything that still reads from it."""
        with self._lock:
            if self._instance is not None:
                self._instance.close()
                self._instance = None
            self._closed = True

    def stream(
        self,
        sql: str,
        schema: pa.Schema,
        tables: Mapping[str, pa.Table | pa.RecordBatchReader] | None = None,
        where: Filter | None = None,
        *,
        files: bool = False,
    ) -> pa.RecordBatchReader:
        """Stream a query's result in exactly the given Arrow types; nothing is materialised.

        Args:
            sql: the query.
            schema: the columns of the result, by position.
            tables: what it reads, by name; a stream may be scanned once, and what it raises comes out unchanged.
            where: the user's filter that the query contains, which a failure is then blamed on, and whose time is
                limited.
            files: whether it reads files, of which much is held in memory.

        Raises:
            Busy: while it is read: others read so much at the same time that memory is short.
        """

        def batches() -> Iterator[pa.RecordBatch]:
            with self.connect() as connection, self._sharing(connection, sql, files) as shared:
                yield from streamed(connection, shared, schema, tables or {}, where, self._settings.filter_seconds)

        return pa.RecordBatchReader.from_batches(schema, batches())

    @contextmanager
    def _sharing(self, connection: duckdb.DuckDBPyConnection, sql: str, files: bool) -> Iterator[str]:
        """Yield the query as it is to be run, so that many may read files at a time.

        Each thread holds a row group, those that are read ahead come on top, and what waits to be taken. Whoever comes
        when every core has something to do gets one thread, one row group ahead, and little that waits: a sixth.
        """
        if not files:
            yield sql
            return
        with self._lock:
            self._reading += 1
            many = self._reading > _CORES
        try:
            # It is of the instance, and counts for queries that begin after it.
            connection.execute(f"SET read_ahead_depth = {1 if many else -1}")
            if many:
                connection.execute("SET streaming_buffer_size = '1MB'")
            # A limit that keeps the order of rows is computed by one thread.
            yield f"SELECT * FROM ({sql}) LIMIT {_ALL_ROWS}" if many else sql
        except StorageFull as error:
            if not many or not error.message.startswith(_NO_MEMORY):
                raise
            raise Busy(
                f"so much is read at the same time that memory is short: {error.message}",
                safe="nothing was changed",
                next_step="ask again in a moment, or raise storage.memory_limit",
            ) from error
        finally:
            with self._lock:
                self._reading -= 1


def streamed(
    connection: duckdb.DuckDBPyConnection,
    sql: str,
    schema: pa.Schema,
    tables: Mapping[str, pa.Table | pa.RecordBatchReader],
    where: Filter | None = None,
    filter_seconds: float | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield a query's result as `Duck.stream` does, from a connection that is closed after it."""
    raised: list[BaseException] = []
    limit = TimeLimit(filter_seconds if where is not None else None, connection.interrupt)
    try:
        for name, rows in tables.items():
            connection.register(name, _remembering(rows, raised, limit))
        yield from joined(_pieces(connection, sql, limit), schema)
    except (duckdb.Error, OSError, pa.ArrowException) as error:
        if limit.expired and where is not None:
            raise limit.exceeded(f"filter {where.sql!r}") from None
        # What a source raised passes through DuckDB as text only; its own error says what is wrong.
        raise raised[0] if raised else named(error, where) from None
    finally:
        limit.close()


def _pieces(connection: duckdb.DuckDBPyConnection, sql: str, limit: TimeLimit) -> Iterator[pa.RecordBatch]:
    with limit.running():
        # `sql` and not `execute`: the latter would materialise the result before its first batch.
        reader = connection.sql(sql).to_arrow_reader(PULL_ROWS)
    while True:
        with limit.running():
            piece = next(reader, None)
        if piece is None:
            return
        yield piece


@contextmanager
def given(
    connection: duckdb.DuckDBPyConnection, tables: Mapping[str, pa.Table | pa.RecordBatchReader]
) -> Iterator[None]:
    """Let the block's statements read Arrow data by name; what a stream raises comes out of the block unchanged.

    Args:
        connection: the one that the statements run on.
        tables: what they may read; a stream can be scanned once.
    """
    raised: list[BaseException] = []
    unlimited = TimeLimit(None, connection.interrupt)
    for name, rows in tables.items():
        connection.register(name, _remembering(rows, raised, unlimited))
    try:
        yield
    except (duckdb.Error, OSError, pa.ArrowException) as error:
        raise raised[0] if raised else named(error) from None
    finally:
        for name in tables:
            connection.unregister(name)


def _remembering(
    rows: pa.Table | pa.RecordBatchReader, raised: list[BaseException], limit: TimeLimit
) -> pa.Table | pa.RecordBatchReader:
    if isinstance(rows, pa.Table):
        return rows

    def next_batch() -> pa.RecordBatch | None:
        with limit.waiting():
            return next(rows, None)

    def batches() -> Iterator[pa.RecordBatch]:
        try:
            while (batch := next_batch()) is not None:
                yield from small(batch)
        except GeneratorExit:
            raise
        except BaseException as error:
            raised.append(error)
            raise

    return pa.RecordBatchReader.from_batches(rows.schema, batches())


def joined(pieces: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Join small batches, in exactly the given types, until they have `BATCH_ROWS` rows or `BATCH_BYTES` bytes."""
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for piece in pieces:
        waiting.append(piece)
        rows += piece.num_rows
        size += piece.nbytes
        if rows >= BATCH_ROWS or size >= BATCH_BYTES:
            # Types are changed once for all of them, and none is held while whoever takes them works on the batch.
            batch, waiting, rows, size = as_schema(pa.concat_batches(waiting), schema), [], 0, 0
            del piece
            yield batch
            del batch
    if waiting:
        yield as_schema(pa.concat_batches(waiting), schema)


def small(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Cut a batch of wide rows: DuckDB holds some copies of what it works on at a time."""
    rows = max(1, batch.num_rows * WORKING_BYTES // max(batch.nbytes, 1))
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)


def memory_limit(connection: duckdb.DuckDBPyConnection) -> int:
    """Return how many bytes DuckDB may use before it spills, which it tells to one decimal."""
    ((text,),) = connection.execute("SELECT current_setting('memory_limit')").fetchall()
    number, unit = str(text).split()
    return int(float(number) * _UNITS[unit])


def as_schema(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return the batch in exactly these types; they may differ in nullability and the names of list items only."""
    if batch.schema == schema:
        return batch
    columns = [
        column if column.type == field.type else column.cast(field.type)
        for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


@contextmanager
def named_errors() -> Iterator[None]:
    """Turn DuckDB's failures into ours."""
    try:
        yield
    except duckdb.Error as error:
        raise named(error) from error


def named(error: Exception, where: Filter | None = None) -> LakewardError:
    """Return what a failure of DuckDB becomes. Through an Arrow stream it has only its text left, so that is read.

    Args:
        error: DuckDB's, or Arrow's with its text.
        where: the user's filter that was part of the query, if any.
    """
    text = str(error).strip()
    failure = REMOTE_FILES.failure(text)
    if failure is not None:
        return failure
    if _DISK_FULL.search(text):
        return StorageFull(f"no space left: {text}", safe="nothing was made visible")
    if isinstance(error, duckdb.OutOfMemoryException) or _MEMORY.match(text):
        return StorageFull(
            f"{_NO_MEMORY}: {text}",
            safe="nothing was made visible",
            next_step="free space in the scratch directory, or raise storage.memory_limit",
        )
    if where is not None and not _FILES.match(text):
        return SqlError(f"filter {where.sql!r} can't be evaluated: {text.splitlines()[0]}")
    return StorageError(f"DuckDB could not read or write: {text}")
