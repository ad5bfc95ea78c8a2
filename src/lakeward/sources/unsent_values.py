"""Values that a log leaves out: they are large, and an update did not change them. They are found in what came before.

A change that lacks a value has that of the row before it. That is the row of the nearest earlier change of its key that
has the value; or, where the row had another key then, the row that the `delete` directly before its `insert` removes,
and so on; or else the row as it was before all of the changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as patypes

from lakeward.errors import StorageError
from lakeward.sources.change_log import OP, UNCHANGED
from lakeward.sources.change_spool import ChangeSpool

Ranges = Mapping[str, tuple[int, int]]
Present = Callable[[Sequence[str], Ranges, pa.Table], Iterator[pa.RecordBatch]]
"""Reads these columns of rows as they are now, at least of those whose keys are in the table, all of which are within
the ranges."""

Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_BATCH_ROWS = 2_048


class UnsentValues:
    """The values that the last changes of their keys lack.

    Args:
        connection: of a database of its own.
        spool: the changes.
        key: columns by which a row is known.
        last: which changes are the last ones of their keys.
        present: reads rows as they were before the changes.

    Raises:
        StorageError: the row that must have been there is not.
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        spool: ChangeSpool,
        key: Sequence[str],
        last: Flags,
        present: Present,
    ) -> None:
        assert spool.schema is not None
        self._connection = connection
        self._spool = spool
        self._key = tuple(key)
        self._keys = ", ".join(f"c{number}" for number in range(len(key)))
        self._op, self._lacking = f"c{len(key)}", f"c{len(key) + 1}"
        self._columns = sorted(spool.unsent)
        self._load("changes", spool.numbered([*key, OP, UNCHANGED], last))
        for number, column in enumerate(self._columns):
            self._trace(number, column)
            self._take_sent(number, column)
        self._take_present(present)
        self._streams = {column: self._ordered(number) for number, column in enumerate(self._columns)}

    def filled(self, rows: pa.RecordBatch, numbers: Numbers) -> pa.RecordBatch:
        """Return rows with the values that they lack.

        Args:
            rows: last changes of keys; each call has later ones than the one before.
            numbers: theirs, rising.
        """
        for column, stream in self._streams.items():
            wants, values = stream.upto(int(numbers[-1]))
            if not len(wants):
                continue
            place = rows.schema.get_field_index(column)
            field = rows.schema.field(place)
            both = pa.concat_arrays([rows.column(place), *(value.cast(field.type) for value in values)])
            takes = np.arange(rows.num_rows)
            takes[np.searchsorted(numbers, wants)] = rows.num_rows + np.arange(len(wants))
            rows = rows.set_column(place, field, both.take(pa.array(takes)))
        return rows

    def _load(self, name: str, rows: pa.RecordBatchReader) -> None:
        self._connection.register("loaded", rows)
        self._connection.execute(f"CREATE TABLE {name} AS FROM loaded")
        self._connection.unregister("loaded")

    def _count(self, table: str) -> int:
        ((count,),) = self._connection.execute(f"SELECT count(*) FROM {table}").fetchall()
        return int(count)

    def _trace(self, number: int, column: str) -> None:
        """Find, for each last change that lacks the column, the change that has it, or the key of the row that does.

        One round for each time that a row changed its key: where it lacked the value then, it goes on from the row
        before that.
        """
        run, keys = self._connection.execute, self._keys
        lacks = f"coalesce(list_contains({self._lacking}, ?), false)"
        same = " AND ".join(f"p.c{each} = h.c{each}" for each in range(len(self._key)))
        run(f"CREATE TABLE source{number} (want BIGINT, n BIGINT)")
        run(f"CREATE TABLE absent{number} AS SELECT n AS want, {keys} FROM changes LIMIT 0")
        run("CREATE OR REPLACE TABLE here (want BIGINT, n BIGINT)")
        run(f"INSERT INTO here SELECT n, n FROM changes WHERE last AND {lacks}", [column])
        run(f"CREATE OR REPLACE TABLE has AS SELECT n, {keys}, false AS lacking FROM changes LIMIT 0")
        run(
            f"INSERT INTO has SELECT n, {keys}, {lacks} FROM changes "
            f"WHERE {self._op} <> 'delete' AND ({self._op} = 'insert' OR NOT {lacks})",
            [column, column],
        )
        while self._count("here"):
            run(
                f"CREATE OR REPLACE TABLE pending AS SELECT here.want, b.n AS before, {_of('b', self._key)} "
                f"FROM here JOIN changes o ON o.n = here.n "
                f"JOIN changes b ON b.n = o.n - CASE WHEN o.{self._op} = 'insert' THEN 1 ELSE 0 END"
            )
            run(
                f"CREATE OR REPLACE TABLE step AS SELECT p.want, {_of('p', self._key)}, h.n, h.lacking "
                f"FROM pending p ASOF LEFT JOIN has h ON {same} AND p.before > h.n"
            )
            run(f"INSERT INTO source{number} SELECT want, n FROM step WHERE NOT lacking")
            run(f"INSERT INTO absent{number} SELECT want, {keys} FROM step WHERE n IS NULL")
            run("CREATE OR REPLACE TABLE here AS SELECT want, n FROM step WHERE lacking")

    def _take_sent(self, number: int, column: str) -> None:
        """Take the values that other changes have."""
        flags = np.zeros(self._spool.rows, np.bool_)
        for batch in self._connection.sql(f"SELECT DISTINCT n FROM source{number}").to_arrow_reader(_BATCH_ROWS):
            flags[batch.column(0).to_numpy()] = True
        assert self._spool.schema is not None
        schema = pa.schema([("n", pa.int64()), ("value", self._spool.schema.field(column).type)])

        def batches() -> Iterator[pa.RecordBatch]:
            for start, batch in self._spool.batches([column]):
                chosen = np.flatnonzero(flags[start : start + batch.num_rows])
                if len(chosen):
                    arrays = [pa.array(chosen + start), batch.column(0).take(pa.array(chosen))]
                    yield pa.RecordBatch.from_arrays(arrays, schema=schema)

        self._load(f"sent{number}", pa.RecordBatchReader.from_batches(schema, batches()))
        self._connection.execute(
            f"CREATE TABLE found{number} AS SELECT s.want, v.value FROM source{number} s JOIN sent{number} v USING (n)"
        )
        self._connection.execute(f"DROP TABLE sent{number}")

    def _take_present(self, present: Present) -> None:
        """Take the values of rows as they were before all changes."""
        numbers = range(len(self._columns))
        keys = " UNION ".join(f"SELECT {self._keys} FROM absent{number}" for number in numbers)
        self._connection.execute(f"CREATE TABLE asked AS {keys}")
        asked = self._count("asked")
        if not asked:
            return
        assert self._spool.schema is not None
        columns = [*self._key, *self._columns]
        names = [*(f"c{number}" for number in range(len(self._key))), *(f"v{number}" for number in numbers)]
        schema = pa.schema(
            [(name, self._spool.schema.field(column).type) for name, column in zip(names, columns, strict=True)]
        )
        batches = (
            pa.RecordBatch.from_arrays(batch.select(columns).columns, schema=schema)
            for batch in present(columns, self._ranges(), self._asked())
        )
        self._connection.register("loaded", pa.RecordBatchReader.from_batches(schema, batches))
        self._connection.execute(f"CREATE TABLE present AS FROM loaded SEMI JOIN asked USING ({self._keys})")
        self._connection.unregister("loaded")
        if self._count("present") != asked:
            raise self._missing()
        for number in numbers:
            self._connection.execute(
                f"INSERT INTO found{number} SELECT a.want, p.v{number} FROM absent{number} a "
                f"JOIN present p USING ({self._keys})"
            )

    def _asked(self) -> pa.Table:
        """Return the keys that are asked for."""
        assert self._spool.schema is not None
        fields = [pa.field(name, self._spool.schema.field(name).type) for name in self._key]
        cursor = self._connection.cursor()
        cursor.execute("SET arrow_lossless_conversion = true")
        found = cursor.sql(f"SELECT {self._keys} FROM asked").to_arrow_table()
        arrays = [column.cast(each.type) for column, each in zip(found.columns, fields, strict=True)]
        return pa.Table.from_arrays(arrays, schema=pa.schema(fields))

    def _ranges(self) -> Ranges:
        """Return between which numbers the keys are that are asked for."""
        assert self._spool.schema is not None
        found: dict[str, tuple[int, int]] = {}
        for number, name in enumerate(self._key):
            if patypes.is_integer(self._spool.schema.field(name).type):
                (ends,) = self._connection.execute(f"SELECT min(c{number}), max(c{number}) FROM asked").fetchall()
                found[name] = ends
        return found

    def _missing(self) -> StorageError:
        rows = self._connection.execute(f"FROM asked ANTI JOIN present USING ({self._keys}) LIMIT 1").fetchall()
        key = dict(zip(self._key, map(str, rows[0]), strict=True)) if rows else {}
        return StorageError(
            f"the row with key {key} was updated at the source, and is not here: the dataset is not what the table was",
            safe="nothing of these changes was written",
            next_step="follow the table anew, which copies it",
            key=key,
        )

    def _ordered(self, number: int) -> _Ordered:
        # A cursor of its own: a connection has one result at a time.
        cursor = self._connection.cursor()
        cursor.execute("SET arrow_lossless_conversion = true")
        found = cursor.sql(f"SELECT want, value FROM found{number} ORDER BY want")
        return _Ordered(found.to_arrow_reader(_BATCH_ROWS), cursor)


class _Ordered:
    """Numbers and values, by the numbers."""

    def __init__(self, reader: pa.RecordBatchReader, cursor: duckdb.DuckDBPyConnection) -> None:
        self._reader = reader
        self._cursor = cursor
        self._left: pa.RecordBatch | None = None

    def upto(self, number: int) -> tuple[Numbers, list[pa.Array]]:
        """Take what is left up to a number, this one included."""
        wants: list[Numbers] = []
        values: list[pa.Array] = []
        while (batch := self._left or next(self._reader, None)) is not None:
            self._left = None
            numbers = batch.column(0).to_numpy()
            count = int(np.searchsorted(numbers, number, side="right"))
            wants.append(numbers[:count])
            values.append(batch.column(1).slice(0, count))
            if count < batch.num_rows:
                self._left = batch.slice(count)
                break
        return np.concatenate(wants) if wants else np.zeros(0, np.int64), values


def _of(table: str, key: Sequence[str]) -> str:
    return ", ".join(f"{table}.c{number}" for number in range(len(key)))
