"""A query that somebody asks once to see its rows: read-only, sealed like every other, and within limits of its own.

Nothing of it is stored. It reads the newest versions of its datasets, all of one instant, as the reader `sql.editor`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from threading import Semaphore

import pyarrow as pa

from lakeward.compute.engine import Engine, Input
from lakeward.compute.full_names import FullNames, read_full_names
from lakeward.compute.place import sql_error
from lakeward.compute.sql import analyse
from lakeward.control.ledger import Ledger
from lakeward.control.records import Window
from lakeward.control.tree import DatasetRecord, Tree
from lakeward.errors import Busy, LakewardError, ResultTooLarge, SqlError, UsageError
from lakeward.pipelines.source_input import source_inputs
from lakeward.storage.facade import Storage
from lakeward.types.logical import LogicalType
from lakeward.types.schema import Schema
from lakeward.types.table import arrow_schema

READER = "sql.editor"
_UNDECLARED = "write the dataset's full name, as in FROM main.raw.orders"


@dataclass(frozen=True)
class SqlLimits:
    """What one query may take.

    Args:
        rows: of a result at most.
        at_a_time: so many run at a time; one more is refused.
    """

    rows: int
    at_a_time: int


@dataclass
class Answer:
    """The result of a query. It holds memory and files until all of it is read, or it is closed.

    Args:
        types: of its columns, in order.
        versions: which version of each dataset it read, by full name.
        rows: what is read; use `reader`.
    """

    types: Mapping[str, LogicalType]
    versions: Mapping[str, int]
    rows: _Rows

    @property
    def reader(self) -> pa.RecordBatchReader:
        """The rows, as a stream."""
        return pa.RecordBatchReader.from_batches(self.rows.schema, self.rows)

    @property
    def truncated(self) -> bool:
        """Whether there were more rows than were asked for. Known when all are read."""
        return self.rows.truncated

    def to_arrow(self) -> pa.Table:
        """Return all rows as one table in memory."""
        with self:
            return self.reader.read_all()

    def close(self) -> None:
        """End the query. May be called again."""
        self.rows.close()

    def __enter__(self) -> Answer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AdHoc:
    """Answers queries. Safe to share between threads.

    Args:
        tree: names of datasets.
        ledger: their versions.
        storage: their rows.
        engine: runs the queries, each within the memory and time that it was made with.
        limits: what else a query may take.
    """

    def __init__(self, tree: Tree, ledger: Ledger, storage: Storage, engine: Engine, limits: SqlLimits) -> None:
        self._tree = tree
        self._ledger = ledger
        self._storage = storage
        self._engine = engine
        self._limits = limits
        self._places = Semaphore(limits.at_a_time)

    def sql(self, text: str, limit: int | None = None) -> Answer:
        """Run one SELECT over datasets, which it names in full: `from main.raw.orders`. Changes nothing.

        Args:
            text: the query.
            limit: so many rows at most; whether there were more, `truncated` of the answer tells. None: all of them,
                and a result of more than the setting `sql.row_limit` is refused.

        Raises:
            SqlError: the query is wrong, or reaches for what it may not, with its line and column.
            UnknownObject: it reads a dataset that is not there.
            SchemaError: two columns of the result have one name, or one has a type that no dataset has.
            Busy: as many queries run as may at a time.
            TimeLimitExceeded, ComputeError: also while the rows are read.

        Example:
            >>> ws.sql("select count(*) as n from main.raw.orders").to_arrow().to_pylist()  # doctest: +SKIP
            [{'n': 3}]
        """
        if limit is not None and not 0 <= limit <= self._limits.rows:
            raise UsageError(
                f"a limit of {limit:,} rows is asked for; there can be 0 to {self._limits.rows:,}, by sql.row_limit",
                next_step="ask for fewer, or export the dataset",
                limit=limit,
            )
        names = self._names(text)
        if not self._places.acquire(blocking=False):
            raise Busy(
                f"{self._limits.at_a_time} queries run now, as many as may at a time, by sql.at_a_time",
                safe="nothing was changed",
                next_step="ask again in a moment",
            )
        try:
            return self._started(text, names, limit)
        except BaseException:
            self._places.release()
            raise

    def _names(self, text: str) -> FullNames:
        names = read_full_names(text, ())
        try:
            analyse(names.text, list(names.sources), named_columns=False, undeclared=_UNDECLARED)
        except SqlError as error:
            raise _located(error, text, names) from None
        return names

    def _started(self, text: str, names: FullNames, limit: int | None) -> Answer:
        records = {name: self._tree.dataset(dataset) for name, dataset in names.sources.items()}
        heads = self._ledger.heads([record.id for record in records.values()]) if records else {}
        versions = {record.name: heads[record.id] for record in records.values()}
        schemas = {name: record.schema for name, record in records.items()}
        try:
            types = self._engine.describe(names.text, schemas)
            reader = self._engine.run(names.text, self._inputs(records, heads))
        except SqlError as error:
            raise _located(error, text, names) from None
        return Answer(types, versions, _Rows(reader, limit, self._limits.rows, self._places))

    def _inputs(self, records: Mapping[str, DatasetRecord], heads: Mapping[int, int]) -> dict[str, Input]:
        written = {name: (record, Window(0, heads[record.id])) for name, record in records.items() if heads[record.id]}
        never = {name: _empty(record.schema) for name, record in records.items() if not heads[record.id]}
        return source_inputs(self._storage, written, reader=READER) | never


class _Rows:
    """The batches of a result up to a number of rows; gives the query's place back when it is closed."""

    def __init__(self, reader: pa.RecordBatchReader, limit: int | None, most: int, places: Semaphore) -> None:
        self.schema = reader.schema
        self.truncated = False
        self._reader: pa.RecordBatchReader | None = reader
        self._left = most if limit is None else limit
        self._cut = limit is not None
        self._most = most
        self._places = places

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self

    def __next__(self) -> pa.RecordBatch:
        try:
            if self._reader is None:
                raise StopIteration
            batch = self._reader.read_next_batch()
            if batch.num_rows <= self._left:
                self._left -= batch.num_rows
                return batch
            return self._last(batch)
        except BaseException:
            self.close()
            raise

    def _last(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if not self._cut:
            raise ResultTooLarge(
                f"the result has more than {self._most:,} rows, the limit by sql.row_limit",
                safe="nothing was changed",
                next_step="let the query end with LIMIT, aggregate, or export the dataset",
                limit=self._most,
            )
        self.truncated = True
        self.close()
        return batch.slice(0, self._left)

    def close(self) -> None:
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.close()
            self._places.release()

    def __del__(self) -> None:
        self.close()


def _empty(schema: Schema) -> Input:
    """Return the input of a dataset that was never written."""
    return Input(schema, lambda columns: arrow_schema(schema.select(tuple(columns))).empty_table().to_reader())


def _located(error: SqlError, text: str, names: FullNames) -> LakewardError:
    """Return the error with its place in the text that the user gave."""
    position = error.fields.get("position")
    place = names.place(position) if isinstance(position, int) else None
    located = sql_error(str(error.fields.get("reason") or error.message), text, place, next_step=error.next_step)
    located.fields.update({key: value for key, value in error.fields.items() if key in ("function", "name")})
    return located
