"""What changed between two versions of a dataset: rows inserted, updated and deleted, compared by `__row_id`.

It is the net change, whatever happened between the two. An arm brings, for each version, the rows that may not be in
the other (see `StorageArm.changes`); this module compares their `__row_id` and `__version`, which are small, lays down
which rows differ, and then reads those rows' columns.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from lakeward.errors import SchemaError, UsageError
from lakeward.storage.arm import Scan
from lakeward.storage.duck import Duck, as_schema, given, named_errors, streamed
from lakeward.storage.filters import quote_identifier
from lakeward.storage.identity import with_identity
from lakeward.storage.routing import Place
from lakeward.storage.sides import PLACE, Relation, Side
from lakeward.storage.table import TableRef
from lakeward.types.schema import IDENTITY_COLUMNS, OP, ROW_ID, VERSION, Schema, name_key
from lakeward.types.table import arrow_schema

INSERT, UPDATE, DELETE, BEFORE = "insert", "update", "delete", "before"
"""What `__op` says of a row: it is new; it is the new or (`before`) the old image of an updated one; or it is gone."""

LATE_SECONDS = 30.0
"""Rows that are first read later than this after their version was resolved are read if that is still there."""

_FOUND = '"op\x01"'
"""What became of a row, under a name that no column can have."""

_OP_FIELD = pa.field(OP, pa.string(), nullable=False)


@dataclass(frozen=True)
class Wanted:
    """What to tell of the changes.

    Args:
        columns: business columns, in the order wanted.
        before: also the old images of updated rows. Without them rows are matched by the primary key, if there is one.
        identity: add the identity columns at the end.
    """

    columns: tuple[str, ...]
    before: bool = True
    identity: bool = False

    def names(self) -> list[str]:
        """Return the columns to read, in the order of the result."""
        return [*self.columns, *(IDENTITY_COLUMNS if self.identity else ())]

    def arrow(self, schema: Schema) -> pa.Schema:
        """Return the Arrow schema of the result."""
        rows = arrow_schema(schema.select(self.columns))
        return pa.schema([_OP_FIELD, *(with_identity(rows) if self.identity else rows)])

    def check(self, table: TableRef) -> None:
        """Raise SchemaError if a column that is asked for has the name of the one that says what became of the row."""
        twin = next((name for name in self.columns if name_key(name) == OP), None)
        if twin is not None:
            raise SchemaError(
                f"dataset {table.name} has a column {twin!r} of its own, which changes can't be told with",
                next_step="ask for the other columns",
                dataset=table.name,
                column=twin,
            )


def check_order(dataset: str, since: object, version: object) -> None:
    """Raise UsageError if there is no time between two versions: a negative one, or the older after the newer."""
    for name, value in (("since", since), ("version", version)):
        # What comes as JSON or from a command line may be anything, and True is an int in Python.
        if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
            raise UsageError(
                f"dataset {dataset}: {name} is {value!r}, and should be a version: a whole number",
                dataset=dataset,
                **{name: str(value)},
            )
    assert isinstance(since, int) and isinstance(version, int | None)
    if since < 0 or (version is not None and since > version):
        why = "it is negative" if since < 0 else f"it is later than version {version}, up to which is read"
        raise UsageError(
            f"dataset {dataset}: nothing can be read since version {since}: {why}",
            next_step="give the older version as `since`; 0 is before the first",
            dataset=dataset,
            since=since,
            version=version,
        )


def inserts(table: TableRef, place: Place | None, wanted: Wanted) -> pa.RecordBatchReader:
    """Return all rows of a version as inserted: what changed since before the first one.

    Args:
        table: the dataset.
        place: where the version is; None: there is none.
        wanted: what to tell of its rows.
    """
    schema = wanted.arrow(table.schema)

    def marked(rows: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        for batch in rows:
            operation = pa.repeat(pa.scalar(INSERT), batch.num_rows)
            yield as_schema(pa.RecordBatch.from_arrays([operation, *batch.columns], names=schema.names), schema)

    if place is None:
        return pa.RecordBatchReader.from_batches(schema, iter(()))
    rows = place.arm.scan(table, place.version, Scan(wanted.columns, wanted.identity))
    return pa.RecordBatchReader.from_batches(schema, marked(rows))


def compared(
    duck: Duck, table: TableRef, sides: tuple[Side, Side], wanted: Wanted, still_there: Callable[[], None]
) -> pa.RecordBatchReader:
    """Stream what changed between two versions.

    Args:
        duck: compares, within its memory limit.
        table: the dataset.
        sides: rows of the older and the newer version.
        wanted: what to tell of the changes.
        still_there: raises if one of the versions has expired. Asked late, when its rows may be gone in part.
    """
    schema = wanted.arrow(table.schema)
    key = table.schema.primary_key if not wanted.before else ()
    return pa.RecordBatchReader.from_batches(schema, _Comparison(duck, sides, wanted, key, still_there).batches(schema))


class _Comparison:
    """One comparison: what differs, what became of it, and then the rows."""

    def __init__(
        self,
        duck: Duck,
        sides: tuple[Side, Side],
        wanted: Wanted,
        key: Sequence[str],
        still_there: Callable[[], None],
    ) -> None:
        self._duck = duck
        self._old, self._new = sides
        self._wanted = wanted
        self._key = key
        self._still_there = still_there
        self._resolved = time.monotonic()

    def batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        with self._duck.connect() as connection:
            self._check()
            with named_errors():
                self._find(connection)
                self._check()
                parts = [
                    marked_rows(connection, side, marks, self._wanted.names())
                    for side, marks in ((self._old, "went"), (self._new, "came"))
                    if _any(connection, marks)
                ]
            if not parts:
                return
            tables = {name: rows for part in parts for name, rows in part.tables.items()}
            yield from streamed(connection, " UNION ALL ".join(part.sql for part in parts), schema, tables)

    def _check(self) -> None:
        if time.monotonic() - self._resolved > LATE_SECONDS:
            self._still_there()

    def _find(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Lay down which rows differ, `went` of the older version and `came` of the newer, and what became of each."""
        old, new = (side.rows([*self._key, ROW_ID, VERSION]) for side in (self._old, self._new))
        # What rows are matched by: `m0`, `m1` …
        match = self._key or (ROW_ID,)
        place = quote_identifier(PLACE)
        images = ", ".join(
            f"{side}.{ROW_ID} AS {name}_id, {side}.{place} AS {name}_place, "
            + ", ".join(f"{side}.{quote_identifier(column)} AS {name}_m{n}" for n, column in enumerate(match))
            for side, name in (("o", "old"), ("n", "new"))
        )
        with given(connection, {**old.tables, **new.tables}):
            connection.execute(
                f"CREATE TEMP TABLE differing AS SELECT {images} FROM ({old.sql}) AS o FULL JOIN ({new.sql}) AS n "
                f"ON o.{ROW_ID} = n.{ROW_ID} AND o.{VERSION} = n.{VERSION} "
                f"WHERE o.{ROW_ID} IS NULL OR n.{ROW_ID} IS NULL"
            ).fetchall()
        self._mark(connection, "came", ("new", "old"), (UPDATE, INSERT), len(match))
        self._mark(connection, "went", ("old", "new"), (BEFORE, DELETE), len(match))
        if not self._wanted.before:
            connection.execute(f"DELETE FROM went WHERE op = '{BEFORE}'").fetchall()

    @staticmethod
    def _mark(
        connection: duckdb.DuckDBPyConnection,
        name: str,
        sides: tuple[str, str],
        operations: tuple[str, str],
        width: int,
    ) -> None:
        """Lay down one side's rows, and whether the other one has rows that match."""
        this, other = sides
        same = " AND ".join(f"d.{this}_m{n} IS NOT DISTINCT FROM e.{other}_m{n}" for n in range(width))
        connection.execute(
            f"CREATE TEMP TABLE {name} AS SELECT d.{this}_id AS id, d.{this}_place AS place, CASE WHEN EXISTS "
            f"(SELECT 1 FROM differing AS e WHERE e.{other}_id IS NOT NULL AND {same}) "
            f"THEN '{operations[0]}' ELSE '{operations[1]}' END AS op FROM differing AS d WHERE d.{this}_id IS NOT NULL"
        ).fetchall()


def marked_rows(connection: duckdb.DuckDBPyConnection, side: Side, marks: str, columns: Sequence[str]) -> Relation:
    """Return the relation of a side's rows that a table of the connection names: what became of each, and its columns.

    Args:
        connection: where the table is.
        side: whose rows.
        marks: the table: `id`, `place` and `op` of each row, `op` not null.
        columns: business and identity columns, in the order wanted.
    """
    places = [place for (place,) in connection.execute(f"SELECT DISTINCT place FROM {marks}").fetchall()]
    rows = side.rows([*columns, *(() if ROW_ID in columns else (ROW_ID,))], places)
    select = ", ".join(f"r.{quote_identifier(name)}" for name in columns)
    if rows.streamed:
        # In a join, DuckDB would take the stream for the shorter one, and hold all of its rows. What a row is
        # looked up in is held in any case, and that are the marks.
        looked_up = f"SELECT (SELECT m.op FROM {marks} AS m WHERE m.id = r.{ROW_ID}) AS {_FOUND}, {select}"
        found = f"SELECT * FROM ({looked_up} FROM ({rows.sql}) AS r) WHERE {_FOUND} IS NOT NULL"
        return Relation(found, rows.tables)
    joined = f"SELECT m.op AS {_FOUND}, {select} FROM ({rows.sql}) AS r JOIN {marks} AS m ON m.id = r.{ROW_ID}"
    return Relation(joined, rows.tables)


def _any(connection: duckdb.DuckDBPyConnection, table: str) -> bool:
    return connection.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchall() != []
