"""Documents: what is written reads back as the same Arrow value, whatever the type."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from psycopg import sql

from lakeward.errors import SchemaError, StorageError
from lakeward.types.jsonb import decode, read_columns, unpacked
from lakeward.types.schema import Schema
from support.documents import ALL, Documents, encoded
from support.rows import ODD_NAMES, arrow_table, tables

EVERYTHING = {
    "b": "boolean",
    "i": "int",
    "l": "long",
    "f": "float",
    "d": "double",
    "m": "decimal(20,4)",
    "p": "decimal(2,2)",
    "s": "string",
    "x": "binary",
    "u": "uuid",
    "day": "date",
    "t": "time",
    "ts": "timestamp",
    "tz": "timestamptz",
    "ls": "list<decimal(4,1)>",
    "r": "struct<a: long, b: list<string>, c: json>",
    "j": "json",
}


def round_trip(documents: Documents, schema: Schema, table: pa.Table) -> pa.Table:
    documents.put(encoded(schema, table))
    return documents.read(schema)


def exactly(table: pa.Table) -> str:
    """Return the content as a text in which NaN equals NaN and -0.0 differs from 0.0."""
    return repr(table.to_pylist())


@settings(max_examples=60)
@given(drawn=tables())
def test_every_row_of_every_type_reads_back(documents: Documents, drawn: tuple[Schema, pa.Table]) -> None:
    schema, table = drawn
    back = round_trip(documents, schema, table)
    assert back.schema.equals(table.schema, check_metadata=True)
    assert exactly(back) == exactly(table), "seen: " + str(encoded(schema, table))


def test_the_forms_of_the_values() -> None:
    schema = Schema.declare(EVERYTHING)
    row: dict[str, Any] = {
        "b": True,
        "i": -7,
        "l": 2**63 - 1,
        "f": 0.1,
        "d": 0.1,
        "m": Decimal("1.1000"),
        "p": Decimal("-0.19"),
        "s": 'q"\\\n😀',
        "x": b"\x00\x01\xff",
        "u": bytes(15) + b"\x05",
        "day": dt.date(1, 1, 1),
        "t": dt.time(12, 0, 0, 500000),
        "ts": dt.datetime(2024, 2, 29, 1, 2, 3),
        "tz": dt.datetime(2024, 2, 29, 1, 2, 3, 4, tzinfo=dt.timezone(dt.timedelta(hours=2))),
        "ls": [Decimal("1.0"), None],
        "r": {"a": None, "b": [None, ""], "c": "null"},
        "j": '{"a": [1, 1.5]}',
    }
    (text,) = encoded(schema, arrow_table(schema, [row]))
    assert '"l":9223372036854775807' in text
    assert json.loads(text, parse_float=str) == {
        "b": True,
        "i": -7,
        "l": 2**63 - 1,
        "f": "0.10000000149011612",
        "d": "0.1",
        "m": "1.1000",
        "p": "-0.19",
        "s": 'q"\\\n😀',
        "x": "AAH/",
        "u": "00000000-0000-0000-0000-000000000005",
        "day": "0001-01-01",
        "t": "12:00:00.5",
        "ts": "2024-02-29T01:02:03.000000",
        "tz": "2024-02-28T23:02:03.000004Z",
        "ls": ["1.0", None],
        "r": {"b": [None, ""], "c": "null"},
        "j": {"a": [1, "1.5"]},
    }


def test_a_row_of_nulls_is_an_empty_document() -> None:
    schema = Schema.declare(EVERYTHING)
    assert encoded(schema, arrow_table(schema, [dict.fromkeys(EVERYTHING)])) == ["{}"]


def test_t02_p01_special_floats_keep_their_value(documents: Documents) -> None:
    schema = Schema.declare({"d": "double", "f": "float", "l": "list<double>"})
    values = [float("nan"), float("inf"), float("-inf"), -0.0, 0.0, 5e-324, 1e21, 1e-7]
    table = arrow_table(
        schema, [{"d": value, "f": value if abs(value) > 1e-40 else 0.0, "l": [value]} for value in values]
    )
    assert exactly(round_trip(documents, schema, table)) == exactly(table)
    # The same values for whoever queries the documents in SQL.
    rows = documents.connection.execute(
        "SELECT (data->>'d')::float8 FROM lakeward_documents ORDER BY position"
    ).fetchall()
    assert repr([value for (value,) in rows]) == repr(values)


def test_t07_integers_above_2_to_53_keep_their_digits(documents: Documents) -> None:
    schema = Schema.declare({"n": "long", "big": "decimal(38,0)", "ns": "list<long>", "j": "json"})
    numbers = [9007199254740993, 4611686018427387905, 2**63 - 1, -(2**63)]
    table = arrow_table(
        schema,
        [{"n": n, "big": Decimal("12345678901234567890123"), "ns": [n], "j": f'{{"n": {n}}}'} for n in numbers],
    )
    assert round_trip(documents, schema, table).equals(table)


def test_t03_the_ends_of_time(documents: Documents) -> None:
    schema = Schema.declare({"day": "date", "ts": "timestamp", "tz": "timestamptz", "tzs": "list<timestamptz>"})
    first, last = dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999999)
    table = arrow_table(
        schema,
        [
            {"day": at.date(), "ts": at, "tz": at.replace(tzinfo=dt.UTC), "tzs": [at.replace(tzinfo=dt.UTC)]}
            for at in (first, last)
        ],
    )
    assert round_trip(documents, schema, table).equals(table)


def test_n01_s03_odd_names_are_plain_names(documents: Documents) -> None:
    quoted = ", ".join('"' + name.replace('"', '""') + '": long' for name in ODD_NAMES)
    schema = Schema.declare({**dict.fromkeys(ODD_NAMES, "long"), "nested": f"list<struct<{quoted}>>"})
    numbers = {name: number for number, name in enumerate(ODD_NAMES)}
    table = arrow_table(schema, [{**numbers, "nested": [numbers]}])
    assert round_trip(documents, schema, table).equals(table)
    # Also beside parameters: a `%` in a name is no placeholder.
    query = sql.SQL("SELECT {} FROM lakeward_documents WHERE position > %s").format(read_columns(schema, ODD_NAMES))
    assert documents.connection.execute(query, [0]).fetchone() == tuple(str(number) for number in numbers.values())


def test_a_json_null_is_not_a_null(documents: Documents) -> None:
    schema = Schema.declare({"j": "json", "js": "list<json>", "r": "struct<j: json>"})
    rows = [
        {"j": "null", "js": ["null", None, '"null"'], "r": {"j": "null"}},
        {"j": None, "js": None, "r": {"j": None}},
        {"j": '"null"', "js": [], "r": None},
    ]
    table = arrow_table(schema, rows)
    assert round_trip(documents, schema, table).to_pylist() == rows


def test_u05_null_empty_and_missing_are_three_things(documents: Documents) -> None:
    schema = Schema.declare({"s": "struct<x: long, l: list<long>>", "l": "list<list<long>>"})
    rows = [
        {"s": None, "l": None},
        {"s": {"x": None, "l": None}, "l": []},
        {"s": {"x": None, "l": []}, "l": [None]},
        {"s": {"x": 5, "l": [None]}, "l": [[], [None, 1]]},
    ]
    table = arrow_table(schema, rows)
    assert round_trip(documents, schema, table).to_pylist() == rows


def test_e03_a_promoted_column_reads_its_old_documents(documents: Documents) -> None:
    old = Schema.declare({"i": "int", "f": "float", "d": "decimal(5,2)"})
    new = Schema.declare({"i": "long", "f": "double", "d": "decimal(10,2)"})
    documents.put(encoded(old, arrow_table(old, [{"i": 7, "f": 0.1, "d": Decimal("1.23")}])))
    assert documents.read(new).to_pylist() == [{"i": 7, "f": 0.10000000149011612, "d": Decimal("1.23")}]


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        ("timestamp", '"infinity"'),
        ("timestamptz", '"-infinity"'),
        ("date", '"0044-03-15 BC"'),
        ("long", "1.5"),
        ("int", "2147483648"),
        ("boolean", '"yes"'),
        ("uuid", '"1"'),
        ("binary", '"?"'),
        ("decimal(3,1)", '"1.23"'),
        ("list<long>", '["x"]'),
        ("list<long>", '{"a": 1}'),
        ("struct<a: date>", '{"a": "infinity"}'),
    ],
)
def test_t03_a_stored_value_of_another_type_is_named(documents: Documents, type_: str, value: str) -> None:
    schema = Schema.declare({"n": "long", "x": type_})
    documents.put(['{"n":1}', '{"n":2}', f'{{"n":3,"x":{value}}}', '{"n":4}'])
    with pytest.raises(StorageError) as caught:
        documents.read(schema)
    assert (caught.value.fields["column"], caught.value.fields["row"]) == ("x", 2)
    assert str(json.loads(value) if value.startswith('"') else value) in caught.value.message


def test_what_has_its_type_is_not_copied_and_other_columns_pass() -> None:
    schema = Schema.declare({"s": "string", "n": "long"})
    batch = pa.record_batch({"s": ["a"], "n": pa.array([1], pa.int64()), "__row_id": pa.array([7], pa.int64())})
    result = decode(batch, schema)
    assert result.equals(batch)
    assert result["s"].buffers()[2].address == batch["s"].buffers()[2].address


def test_read_columns_takes_the_order_that_was_asked(documents: Documents) -> None:
    schema = Schema.declare({"a": "long", "b": "json"})
    documents.put(['{"a":1,"b":"x"}'])
    query = sql.SQL("SELECT {} FROM (SELECT {} AS doc FROM ({}) AS rows OFFSET '0') AS documents").format(
        read_columns(schema, ["b", "a"], sql.Identifier("doc")), unpacked(sql.Identifier("data")), ALL
    )
    assert documents.connection.execute(query).fetchall() == [('"x"', "1")]
    with pytest.raises(SchemaError, match="unknown column 'c'"):
        read_columns(schema, ["c"])
