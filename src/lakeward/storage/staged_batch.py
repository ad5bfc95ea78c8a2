"""The input of a keyed write, whole: in a temporary DuckDB table, checked before an arm writes anything.

A key that comes twice is known only when every row has been seen. So the rows are laid down first, spilling to disk
where memory is short, and both arms then match them as a set.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import duckdb
import pyarrow as pa

from lakeward.errors import DuplicateKey, ValueRefused
from lakeward.storage.duck import given
from lakeward.storage.filters import quote_identifier
from lakeward.storage.table import TableRef
from lakeward.storage.verbs import Verb
from lakeward.types.refusal import show
from lakeward.types.schema import OP, OPS, Column, Schema

BATCH = "batch"
"""What the table is called."""

SHOWN_KEYS = 5
_INCOMING = "incoming"
_POSITION = "position"


def alias(column: Column) -> str:
    """Return the name of a dataset's column in the batch: by field id, so that no human name can be in the way."""
    return f"c{column.field_id}"


def aliased(schema: Schema, qualifier: str | None = None) -> Schema:
    """Return the schema under the batch's names, for expressions like `row_text_duckdb`.

    Args:
        schema: the dataset's columns.
        qualifier: put before each name, with an underscore; none: nothing is.
    """
    before = f"{qualifier}_" if qualifier else ""
    return Schema(tuple(Column(f"{before}{alias(column)}", column.type, column.field_id) for column in schema.columns))


def key_columns(schema: Schema) -> tuple[Column, ...]:
    """Return the columns of the primary key, in its order."""
    return tuple(schema.column(name) for name in schema.primary_key)


def same_key(schema: Schema, left: str, right: str) -> str:
    """Return the DuckDB condition that two relations, both under the batch's names, have the same key."""
    return " AND ".join(f"{left}.{alias(column)} = {right}.{alias(column)}" for column in key_columns(schema))


class StagedBatch:
    """The rows of a keyed write's input, in the temporary table `BATCH` of one DuckDB connection.

    Its columns are `position` (BIGINT, from 0 in the input's order), `removes` (BOOLEAN: the row asks for a deletion),
    and one `c<field id>` for each business column of the input: all of them, or for `delete` those of the key.

    Args:
        connection: where the table is; it goes with the connection.
        table: the dataset.
        verb: a keyed one.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, table: TableRef, verb: Verb) -> None:
        self._connection = connection
        self._table = table
        self._verb = verb
        self.rows = 0
        self.removing = 0
        self.bytes = 0
        """Of its rows in memory, as they came."""

    def load(self, batches: pa.RecordBatchReader) -> None:
        """Lay down the rows and check them.

        Args:
            batches: the columns of the verb's `input_schema`.

        Raises:
            DuplicateKey: a key comes more than once; nothing was written.
            ValueRefused: an `__op` that there is not.
        """
        taken = self._verb.input_schema(self._table.schema)
        business = taken.columns[:-1] if self._verb.per_row else taken.columns
        columns = [f"{quote_identifier(each.name)} AS {alias(each)}" for each in business]
        removes = "true" if self._verb.removes else "false"
        if self._verb.per_row:
            removes = f"coalesce({quote_identifier(OP)} = 'delete', false)"
        operation = f", {quote_identifier(OP)} AS op" if self._verb.per_row else ""
        with given(self._connection, {_INCOMING: self._positioned(batches)}):
            self._connection.execute(
                f'CREATE TEMP TABLE {BATCH} AS SELECT "{_POSITION}\x01" AS position, {removes} AS removes, '
                f"{', '.join(columns)}{operation} FROM {_INCOMING}"
            )
        # Every result is fetched to its end: until then the connection does nothing else.
        counted = self._connection.execute(f"SELECT count(*), count(*) FILTER (WHERE removes) FROM {BATCH}").fetchall()
        ((self.rows, self.removing),) = counted
        if self._verb.per_row:
            self._check_operations()
        self._check_duplicates()

    def refuse_ambiguous(self, positions: str) -> None:
        """Refuse the dataset if a query yields any position: that of a row whose key the dataset has more than once.

        Args:
            positions: a DuckDB query with the one column `position`, each once.

        Raises:
            DuplicateKey: it has; nothing was written.
        """
        found = self._keys(f"SELECT position FROM ({positions}) AS found")
        if found:
            raise self._duplicates(found, "dataset", f"SELECT count(*) FROM ({positions}) AS found")

    def _check_operations(self) -> None:
        allowed = ", ".join(f"'{each}'" for each in OPS)
        found = self._connection.execute(
            f"SELECT position, op FROM {BATCH} WHERE op IS NULL OR op NOT IN ({allowed}) ORDER BY position LIMIT 1"
        ).fetchall()
        for position, value in found:
            raise ValueRefused(
                f"dataset {self._table.name}: row {position + 1}, column {OP!r}: value {show(value)} is none of "
                f"{', '.join(OPS)}",
                safe="nothing was written",
                dataset=self._table.name,
                column=OP,
                row=position + 1,
                value=show(value),
            )

    def _check_duplicates(self) -> None:
        keys = ", ".join(alias(column) for column in key_columns(self._table.schema))
        repeated = f"SELECT min(position) AS position FROM {BATCH} GROUP BY {keys} HAVING count(*) > 1"
        found = self._keys(repeated)
        if found:
            raise self._duplicates(found, "input", f"SELECT count(*) FROM ({repeated}) AS repeated")

    def _keys(self, positions: str) -> list[dict[str, Any]]:
        """Return the first keys of a query's positions, by column, as they are shown."""
        columns = key_columns(self._table.schema)
        select = ", ".join(f"{alias(column)} AS {quote_identifier(column.name)}" for column in columns)
        query = f"SELECT {select} FROM {BATCH} WHERE position IN ({positions}) ORDER BY position LIMIT {SHOWN_KEYS}"
        table = self._connection.sql(query).to_arrow_table()
        return [{name: show(table[name][row]) for name in table.column_names} for row in range(table.num_rows)]

    def _duplicates(self, keys: Sequence[dict[str, Any]], where: str, count: str) -> DuplicateKey:
        ((total,),) = self._connection.execute(count).fetchall()
        shown = "; ".join(", ".join(f"{name}={value}" for name, value in key.items()) for key in keys)
        more = f" and {total - len(keys):,} more" if total > len(keys) else ""
        what = f"the input has {'a key' if total == 1 else f'{total:,} keys'} more than once: {shown}{more}"
        step = "keep one row of each key: which one is yours to say"
        if where == "dataset":
            what = f"it holds {'a key' if total == 1 else f'{total:,} keys'} more than once: {shown}{more}"
            step = "replace its rows with one for each key; append does not look at keys"
        return DuplicateKey(
            f"dataset {self._table.name}: {what}",
            safe="nothing was written",
            next_step=step,
            dataset=self._table.name,
            where=where,
            keys=list(keys),
            count=total,
        )

    def _positioned(self, batches: pa.RecordBatchReader) -> pa.RecordBatchReader:
        """Return the stream with each row's position behind its columns, under a name that no column can have."""
        schema = batches.schema.append(pa.field(f"{_POSITION}\x01", pa.int64(), nullable=False))

        def numbered() -> Iterator[pa.RecordBatch]:
            row = 0
            for batch in batches:
                numbers = pa.arange(row, row + batch.num_rows)
                self.bytes += batch.nbytes
                yield pa.RecordBatch.from_arrays([*batch.columns, numbers], schema=schema)
                row += batch.num_rows

        return pa.RecordBatchReader.from_batches(schema, numbered())
