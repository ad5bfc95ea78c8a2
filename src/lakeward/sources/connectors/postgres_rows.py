"""The rows of one table as Arrow batches: the server selects each column by its rule, and finds what is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from adbc_driver_manager.dbapi import Connection
from psycopg import sql

from lakeward.errors import ValueRefused
from lakeward.sources.connector import SourceTable
from lakeward.sources.connectors.postgres_types import Rule
from lakeward.types.logical import parse_type
from lakeward.types.refusal import show
from lakeward.types.table import arrow_type

REFUSED = "__refused"
"""A column behind the table's own: null, or the column's name, a line break and the text of a value that is refused."""

TableRule = tuple[str, Rule, str]
"""A column's name, how it is read, and the database's own text of its type."""


class TableRows:
    """Streams one table's rows.

    Args:
        connection: in a transaction of the source; nothing else reads from it meanwhile.
        named: a context that names the driver's errors.
        table: which one.
        rules: its columns.
        types: the columns to read, in order, and their logical types' texts.
    """

    def __init__(
        self,
        connection: Connection,
        named: Callable[[], Any],
        table: SourceTable,
        rules: Sequence[TableRule],
        types: Mapping[str, str],
    ) -> None:
        self._connection = connection
        self._named = named
        self._table = table
        by_name = {rule[0]: rule for rule in rules}
        self._rules = [by_name[name] for name in types]
        self._target = pa.schema([pa.field(name, _delivered(type_)) for name, type_ in types.items()])

    def stream(self, where: sql.Composable) -> pa.RecordBatchReader:
        """Return the rows that a condition is true for; batches are as large as the driver makes them, 16 MiB."""
        return pa.RecordBatchReader.from_batches(self._target, self._batches(self._query(where).as_string()))

    def _query(self, where: sql.Composable) -> sql.Composable:
        columns: list[sql.Composable] = [rule.read(sql.Identifier(name)) for name, rule, _ in self._rules]
        guards = [
            sql.SQL("WHEN {} THEN {} || E'\\n' || CAST({} AS text)").format(
                rule.bad(sql.Identifier(name)), sql.Literal(name), sql.Identifier(name)
            )
            for name, rule, _ in self._rules
            if rule.bad is not None
        ]
        if guards:
            columns.append(sql.SQL("CASE {} END").format(sql.SQL(" ").join(guards)))
        return sql.SQL("SELECT {} FROM {} WHERE {}").format(
            sql.SQL(", ").join(columns), sql.Identifier(self._table.schema, self._table.name), where
        )

    def _batches(self, query: str) -> Iterator[pa.RecordBatch]:
        width = len(self._target)
        with self._named():
            with self._connection.cursor() as cursor:
                cursor.execute(query)
                for batch in cursor.fetch_record_batch():
                    if batch.num_columns > width:
                        self._check(batch)
                    columns = [
                        _as(array, field.type) for array, field in zip(batch.columns[:width], self._target, strict=True)
                    ]
                    yield pa.RecordBatch.from_arrays(columns, schema=self._target)

    def _check(self, batch: pa.RecordBatch) -> None:
        """Raise for the first row that the server found a value in that is refused."""
        refused = batch.column(batch.num_columns - 1)
        if refused.null_count == len(refused):
            return
        index = next(index for index, valid in enumerate(refused.is_valid().to_pylist()) if valid)
        column, _, value = refused[index].as_py().partition("\n")
        _, rule, native = next(each for each in self._rules if each[0] == column)
        names = list(self._target.names)
        key = {name: show(batch.column(names.index(name))[index]) for name in self._table.primary_key if name in names}
        raise value_refused(self._table, column, f"{native} {value!r} is no {rule.type}", key, value)


def value_refused(
    table: SourceTable, column: str, why: str, key: Mapping[str, str], value: str, corrected: str = ""
) -> ValueRefused:
    """Return the error of a value that its column's logical type can't hold.

    Args:
        table, column, key, value: which one.
        why: names its type, and that which it is not.
        corrected: what has to follow once it is corrected at the source.
    """
    where = f" ({', '.join(f'{name}={text}' for name, text in key.items())})" if key else ""
    return ValueRefused(
        f"{table.full_name}{where}, column {column!r}: {why}",
        safe="nothing was written",
        next_step=f"correct it at the source{corrected}; or read the column as it is printed there: --text {column} "
        "--into catalog.schema, for a new dataset",
        table=table.full_name,
        column=column,
        key=dict(key),
        value=value,
    )


def _delivered(type_: str) -> pa.DataType:
    """Return the Arrow type in which a column is handed on. That of lists is as the driver names their items."""
    return arrow_type(parse_type(type_))


def _as(array: pa.Array, type_: pa.DataType) -> pa.Array:
    """Return the array in a type that holds the same values; numerics come as text, and json as its text."""
    if array.type == type_:
        return array
    plain = array.storage if isinstance(array.type, pa.OpaqueType | pa.JsonType) else array
    return plain if plain.type == type_ else plain.cast(type_)
