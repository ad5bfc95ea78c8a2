"""A walk over the type table: no entry is missing, and each type's life holds together."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given

from lakeward.types.digest import digest_batches
from lakeward.types.logical import SIMPLE_TYPES, LogicalType, parse_type
from lakeward.types.schema import Schema
from lakeward.types.table import RULES, arrow_schema, arrow_type, duckdb_type, logical_type
from support.documents import Documents, encoded
from support.rows import arrow_table, tables, types

ONE_OF_EACH = {
    "boolean": (pa.bool_(), "BOOLEAN"),
    "int": (pa.int32(), "INTEGER"),
    "long": (pa.int64(), "BIGINT"),
    "float": (pa.float32(), "FLOAT"),
    "double": (pa.float64(), "DOUBLE"),
    "decimal(18,4)": (pa.decimal128(18, 4), "DECIMAL(18,4)"),
    "string": (pa.string(), "VARCHAR"),
    "binary": (pa.binary(), "BLOB"),
    "uuid": (pa.uuid(), "UUID"),
    "date": (pa.date32(), "DATE"),
    "time": (pa.time64("us"), "TIME"),
    "timestamp": (pa.timestamp("us"), "TIMESTAMP"),
    "timestamptz": (pa.timestamp("us", "UTC"), "TIMESTAMP WITH TIME ZONE"),
    "list<long>": (pa.list_(pa.field("element", pa.int64())), "BIGINT[]"),
    'struct<"a b": date>': (pa.struct([("a b", pa.date32())]), 'STRUCT("a b" DATE)'),
    "json": (pa.string(), "VARCHAR"),
}


def test_every_type_has_a_rule_and_every_rule_a_type() -> None:
    assert set(RULES) == {*SIMPLE_TYPES, "decimal", "list", "struct"}
    assert {parse_type(text).kind for text in ONE_OF_EACH} == set(RULES)


def test_types_share_a_tag_only_with_what_they_may_become() -> None:
    by_tag: dict[str, list[str]] = {}
    for kind, rule in RULES.items():
        by_tag.setdefault(rule.tag, []).append(kind)
    assert [kinds for kinds in by_tag.values() if len(kinds) > 1] == [["int", "long"], ["float", "double"]]


@pytest.mark.parametrize("text", ONE_OF_EACH)
def test_the_types_of_both_engines(text: str) -> None:
    arrow, in_duckdb = ONE_OF_EACH[text]
    type_ = parse_type(text)
    assert arrow_type(type_).equals(arrow, check_metadata=True)
    with duckdb.connect() as engine:
        engine.execute(f"CREATE TABLE declared (x {duckdb_type(type_)})")
        engine.register("arrived", pa.table({"x": pa.nulls(1, arrow)}))
        for table in ("declared", "arrived"):
            assert [row[1] for row in engine.execute(f"DESCRIBE {table}").fetchall()] == [in_duckdb]


@given(types)
def test_the_arrow_type_of_a_type_has_that_type_as_its_nearest(type_: LogicalType) -> None:
    # A json column's Arrow type is text, which no one can tell from a string's.
    assert str(logical_type(arrow_type(type_))) == str(type_).replace("json", "string") or "json" in str(type_)


@pytest.mark.parametrize("text", ONE_OF_EACH)
def test_t09_null_stays_null_and_nothing_else_becomes_null(documents: Documents, text: str) -> None:
    schema = Schema.declare({"x": text, "y": "long"})
    table = arrow_table(schema, [{"x": None, "y": None}, {"x": None, "y": 1}])
    documents.put(encoded(schema, table))
    assert documents.read(schema).equals(table)
    assert documents.digest(schema) == digest_batches(schema, table.to_batches())


@given(drawn=tables())
def test_parquet_keeps_every_type(drawn: tuple[Schema, pa.Table]) -> None:
    schema, table = drawn
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    back = pq.read_table(pa.BufferReader(sink.getvalue()), schema=arrow_schema(schema))
    assert repr(back.to_pylist()) == repr(table.to_pylist())
