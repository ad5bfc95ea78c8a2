"""Pairs the rows of two sides by their key, and says what differs, by the text that the digest is of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from lakeward.storage.duck import SOURCE, given
from lakeward.storage.filters import quote_identifier
from lakeward.types.digest import row_text_duckdb
from lakeward.types.logical import LogicalType, simple
from lakeward.types.refusal import show
from lakeward.types.schema import ROW_ID, ROW_INDEX, Column, Schema
from lakeward.types.table import nested_json

SAMPLES = 20
SHOWN = 200
"""So many characters of a value are shown."""

FIRST, SECOND = "first_side", "second_side"
"""The tables that the rows of the two sides are laid down in, with their identity columns."""

_NTH = '"nth\x01"'  # no column can have this name


@dataclass(frozen=True)
class Sample:
    """One thing in which two arms differ.

    Args:
        key: of the row: its key columns as text, or its `__row_id` where the dataset has no key.
        what: `differs`; `missing` on `arm`; `twice` on `arm`; `unreadable` on `arm`.
        column: which one differs, or can't be read; None: the whole row.
        values: what each arm has there, as text, cut short; None: null.
        arm: see `what`.
    """

    key: Mapping[str, str | None]
    what: str
    column: str | None = None
    values: Mapping[str, str | None] | None = None
    arm: str | None = None

    def to_json(self) -> dict[str, object]:
        """Return it as the control plane keeps it and `--output json` prints it."""
        return {**vars(self), "key": dict(self.key), "values": dict(self.values) if self.values is not None else None}

    def __str__(self) -> str:
        key = ", ".join(f"{name}={value}" for name, value in self.key.items())
        if self.what in ("missing", "twice"):
            return f"{key}: {self.what} on {self.arm}"
        values = ", ".join(f"{arm} {_shown(value)}" for arm, value in (self.values or {}).items())
        return f"{key}: {self.column} {self.what}: {values}"


@dataclass(frozen=True)
class Paired:
    """What differs: how many rows; how many of them by column, and missing by arm; and samples."""

    rows: int
    columns: dict[str, int]
    missing: dict[str, int]
    samples: tuple[Sample, ...]


def key_text(value: pa.Scalar) -> str:
    """Return a value of a key as a sample has it: text as it is, all else as it is shown."""
    return str(value.as_py()) if pa.types.is_string(value.type) else show(value)


def pair(connection: duckdb.DuckDBPyConnection, schema: Schema) -> bool:
    """Compare what is laid down in `FIRST` and `SECOND`; say whether a key is on one side only.

    Rows pair by the primary key, or by `__row_id` where there is none; of several rows with one key the first ones
    pair, and so on.

    Args:
        connection: where the tables are.
        schema: the columns to compare, and the key.
    """
    connection.execute(_differing(_columns(schema), schema.primary_key)).fetchall()
    ((alone,),) = connection.execute("SELECT count_if(no_first OR no_second) FROM differing").fetchall()
    return bool(alone and schema.primary_key)


def count_keys(connection: duckdb.DuckDBPyConnection, schema: Schema, rows: pa.RecordBatchReader, side: str) -> None:
    """Count, among all rows of an arm, those with a key that is on one side only of what was laid down.

    Args:
        connection: where the pairs are.
        schema: the key.
        rows: the key's columns of all rows of the arm.
        side: `FIRST` or `SECOND`.
    """
    key = [quote_identifier(name) for name in schema.primary_key]
    join = " AND ".join(f"s.{name} = d.k{at}" for at, name in enumerate(key))
    names = ", ".join(f"s.{name} AS k{at}" for at, name in enumerate(key))
    with given(connection, {SOURCE: rows}):
        connection.execute(
            f"CREATE OR REPLACE TEMP TABLE {side}_keys AS SELECT {names}, count(*) AS rows "
            f"FROM {quote_identifier(SOURCE)} AS s SEMI JOIN "
            f"(SELECT * FROM differing WHERE no_first OR no_second) AS d ON {join} GROUP BY ALL"
        ).fetchall()


def settle_keys(connection: duckdb.DuckDBPyConnection, schema: Schema) -> None:
    """Correct what was taken for missing, by the counts of both arms.

    A key that the other arm has elsewhere is not missing there: it is twice on this one, or has moved. One that has
    moved is part of what was not looked into, and left to that.
    """
    for lacks, has, absent in ((FIRST, SECOND, "no_first"), (SECOND, FIRST, "no_second")):
        same = " AND ".join(f"l.k{at} = h.k{at} AND h.k{at} = d.k{at}" for at in range(len(schema.primary_key)))
        elsewhere = f"FROM {lacks}_keys AS l, {has}_keys AS h WHERE d.{absent} AND {same}"
        connection.execute(f"UPDATE differing AS d SET nth = 2 {elsewhere} AND h.rows > l.rows").fetchall()
        connection.execute(
            f"DELETE FROM differing AS d WHERE d.{absent} AND d.nth = 1 AND EXISTS (SELECT 1 {elsewhere})"
        ).fetchall()


def paired(connection: duckdb.DuckDBPyConnection, schema: Schema, arms: tuple[str, str]) -> Paired:
    """Return what `pair` found, with samples.

    Args:
        connection: where the pairs are.
        schema: the columns that were compared, and the key.
        arms: the names of the sides.
    """
    columns = _columns(schema)
    ((rows, *missing),) = connection.execute(
        "SELECT count(*), count_if(no_first AND nth = 1), count_if(no_second AND nth = 1) FROM differing"
    ).fetchall()
    counts = connection.execute(
        "SELECT found.at, count(*) FROM (SELECT unnest(found) AS found FROM differing) GROUP BY 1 ORDER BY 1"
    ).fetchall()
    sampled = connection.execute(
        f"SELECT key, nth, no_first, no_second, found FROM differing ORDER BY position, nth LIMIT {SAMPLES}"
    ).fetchall()
    names = schema.primary_key or (ROW_ID,)
    samples = [
        sample
        for key, *row in sampled
        for sample in _samples(dict(zip(names, key, strict=True)), row, [column.name for column in columns], arms)
    ]
    return Paired(
        rows,
        {columns[at].name: count for at, count in counts},
        {arm: count for arm, count in zip(arms, missing, strict=True) if count},
        tuple(samples[:SAMPLES]),
    )


def _columns(schema: Schema) -> list[Column]:
    """Return what is compared: also where rows of one key are."""
    return [*schema.columns, Column(ROW_INDEX, simple("long"), 0)]


def _differing(columns: list[Column], primary_key: tuple[str, ...]) -> str:
    """Return the statement that lays down, of each pair of rows that is not equal, its key and what differs."""
    key = [quote_identifier(name) for name in primary_key] or [ROW_ID]
    types = {column.name: column.type for column in columns}
    numbered = (
        f"SELECT *, row_number() OVER (PARTITION BY {', '.join(key)} ORDER BY {ROW_INDEX}, {ROW_ID}) AS {_NTH} FROM"
    )
    join = " AND ".join(f"a.{name} IS NOT DISTINCT FROM b.{name}" for name in [*key, _NTH])
    keys = ", ".join(
        _text(types.get(name, simple("long")), f"coalesce(a.{quoted}, b.{quoted})")
        for name, quoted in zip(primary_key or (ROW_ID,), key, strict=True)
    )
    raw = ", ".join(f"coalesce(a.{name}, b.{name}) AS k{at}" for at, name in enumerate(key))
    found = ", ".join(_found(at, column) for at, column in enumerate(columns))
    return (
        "CREATE OR REPLACE TEMP TABLE differing AS "
        f"WITH first AS ({numbered} {FIRST}), second AS ({numbered} {SECOND}), "
        f"paired AS (SELECT [{keys}] AS key, {raw}, coalesce(a.{_NTH}, b.{_NTH}) AS nth, "
        f"coalesce(a.{ROW_INDEX}, b.{ROW_INDEX}) AS position, a.{ROW_ID} IS NULL AS no_first, "
        f"b.{ROW_ID} IS NULL AS no_second, CASE WHEN a.{ROW_ID} IS NULL OR b.{ROW_ID} IS NULL THEN [] "
        f"ELSE list_filter([{found}], lambda each: each IS NOT NULL) END AS found "
        f"FROM first AS a FULL JOIN second AS b ON {join}) "
        "SELECT * FROM paired WHERE no_first OR no_second OR len(found) > 0"
    )


def _found(at: int, column: Column) -> str:
    """Return the expression of what a pair has in a column, null if it is the same."""
    name = quote_identifier(column.name)
    texts = [row_text_duckdb(Schema((column,)), side) for side in ("a", "b")]
    values = f"'first': {_text(column.type, f'a.{name}')}, 'second': {_text(column.type, f'b.{name}')}"
    return f"CASE WHEN {texts[0]} <> {texts[1]} THEN {{'at': {at}, {values}}} END"


def _text(type_: LogicalType, value: str) -> str:
    # Of text only the beginning is made JSON: all of it may be large.
    return f"left({value if type_.kind in ('string', 'json') else nested_json(type_, value)}, {SHOWN})"


def _samples(key: Mapping[str, str | None], row: list[object], names: list[str], arms: tuple[str, str]) -> list[Sample]:
    nth, no_first, no_second, found = row
    assert isinstance(found, list) and isinstance(nth, int)
    if no_first or no_second:
        lacks, has = arms if no_first else arms[::-1]
        return [Sample(key, "missing", arm=lacks) if nth == 1 else Sample(key, "twice", arm=has)]
    return [
        Sample(key, "differs", names[each["at"]], dict(zip(arms, (each["first"], each["second"]), strict=True)))
        for each in found
    ]


def _shown(value: str | None) -> str:
    return "null" if value is None else value
