"""What differs between two versions, laid down for an arm that is to go from the one to the other.

Rows are compared by `__row_id` and `__version`, which are small; then only rows that have come are read whole. So it
costs what changed, and works whatever arms the two versions are on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import duckdb
import pyarrow as pa

from lakeward.storage.changes import marked_rows
from lakeward.storage.duck import Duck, given, named_errors, streamed
from lakeward.storage.filters import quote_identifier, quote_list
from lakeward.storage.identity import IDENTITY_FIELDS, with_identity
from lakeward.storage.sides import PLACE, Difference, Side
from lakeward.storage.table import TableRef
from lakeward.types.schema import ROW_ID, VERSION
from lakeward.types.table import arrow_schema


class SideDifference(Difference):
    """The difference of two sides, found when it is made. Close it when the arm is done.

    Args:
        duck: compares, within its memory limit.
        table: the dataset.
        sides: rows of the older and the newer version, see `StorageArm.changes`.
        watched: is given the stream of the rows that have come, and returns it.
    """

    def __init__(
        self,
        duck: Duck,
        table: TableRef,
        sides: tuple[Side, Side],
        watched: Callable[[pa.RecordBatchReader], pa.RecordBatchReader],
    ) -> None:
        self._watched = watched
        self._duck = duck
        self._table = table
        self._old, self._new = sides
        self._key = table.schema.primary_key
        self._connection = duck.connect()
        try:
            with named_errors():
                self._find(self._connection)
                self.rows_gone, self.rows_come = (self._count(name) for name in ("gone", "come"))
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> SideDifference:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give up what was laid down."""
        self._connection.close()

    def gone(self) -> pa.RecordBatchReader:
        """See `Difference`."""
        key = arrow_schema(self._table.schema.select(self._key)) if self._key else ()
        schema = pa.schema([IDENTITY_FIELDS[1], *key])
        names = ", ".join([f"id AS {ROW_ID}", *(f"k{n} AS {quote_identifier(k)}" for n, k in enumerate(self._key))])
        return self._stream(f"SELECT {names} FROM gone", schema, {})

    def come(self) -> pa.RecordBatchReader:
        """See `Difference`."""
        schema = with_identity(arrow_schema(self._table.schema))
        if not self.rows_come:
            return pa.RecordBatchReader.from_batches(schema, iter(()))
        rows = marked_rows(self._connection, self._new, "come", schema.names)
        return self._watched(self._stream(f"SELECT {quote_list(schema.names)} FROM ({rows.sql})", schema, rows.tables))

    def _stream(
        self, sql: str, schema: pa.Schema, tables: Mapping[str, pa.Table | pa.RecordBatchReader]
    ) -> pa.RecordBatchReader:
        def batches() -> Iterator[pa.RecordBatch]:
            yield from streamed(self._connection, sql, schema, tables)

        return pa.RecordBatchReader.from_batches(schema, batches())

    def _find(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Lay down `gone` (id, key) and `come` (id, place, op) of rows that the other side has not."""
        old, new = self._old.rows([*self._key, ROW_ID, VERSION]), self._new.rows([ROW_ID, VERSION])
        place = quote_identifier(PLACE)
        keys = "".join(f", o.{quote_identifier(name)} AS k{n}" for n, name in enumerate(self._key))
        with given(connection, {**old.tables, **new.tables}):
            connection.execute(
                f"CREATE TEMP TABLE differing AS SELECT o.{ROW_ID} AS old_id, n.{ROW_ID} AS new_id, "
                f"n.{place} AS place{keys} FROM ({old.sql}) AS o FULL JOIN ({new.sql}) AS n "
                f"ON o.{ROW_ID} = n.{ROW_ID} AND o.{VERSION} = n.{VERSION} "
                f"WHERE o.{ROW_ID} IS NULL OR n.{ROW_ID} IS NULL"
            ).fetchall()
        names = "".join(f", k{n}" for n in range(len(self._key)))
        connection.execute(
            f"CREATE TEMP TABLE gone AS SELECT old_id AS id{names} FROM differing WHERE old_id IS NOT NULL"
        ).fetchall()
        connection.execute(
            "CREATE TEMP TABLE come AS SELECT new_id AS id, place, '' AS op FROM differing WHERE new_id IS NOT NULL"
        ).fetchall()

    def _count(self, name: str) -> int:
        ((rows,),) = self._connection.execute(f"SELECT count(*) FROM {name}").fetchall()
        return int(rows)
