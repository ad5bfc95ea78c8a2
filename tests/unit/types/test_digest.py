"""The digest: the same from Postgres, DuckDB and a file, and different for different rows."""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import struct
import uuid
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakeward.errors import UsageError
from lakeward.types.digest import EMPTY, Digest, digest_batches, postgres_digest_sql
from lakeward.types.json_text import canonical_json
from lakeward.types.schema import Schema
from lakeward.types.table import arrow_schema
from support.documents import ALL, Documents, encoded
from support.rows import arrow_table, tables

HALVES = st.integers(0, 2**64 - 1)
DIGESTS = st.builds(Digest, st.integers(0, 10**12), HALVES, HALVES)


def digest(columns: Mapping[str, str], *rows: Mapping[str, Any]) -> Digest:
    schema = Schema.declare(columns)
    return digest_batches(schema, arrow_table(schema, rows).to_batches())


def one(type_: str, value: Any) -> Digest:
    """Return the digest of one row with one value."""
    return digest({"x": type_}, {"x": value})


@settings(max_examples=60)
@given(drawn=tables())
def test_both_engines_and_a_parquet_file_agree(documents: Documents, drawn: tuple[Schema, pa.Table]) -> None:
    schema, table = drawn
    documents.put(encoded(schema, table))
    expected = digest_batches(schema, table.to_batches())
    assert documents.digest(schema) == expected, "seen: " + str(encoded(schema, table))
    assert digest_batches(schema, documents.read(schema).to_batches()) == expected
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    file = pq.read_table(pa.BufferReader(sink.getvalue()), schema=arrow_schema(schema))
    assert digest_batches(schema, file.to_batches()) == expected


@settings(max_examples=40)
@given(drawn=tables(max_rows=12), data=st.data())
def test_p03_order_and_batches_do_not_matter(drawn: tuple[Schema, pa.Table], data: st.DataObject) -> None:
    schema, table = drawn
    order = data.draw(st.permutations(range(table.num_rows)))
    size = data.draw(st.integers(1, 5))
    shuffled = table.take(pa.array(order, pa.int64()))
    expected = digest_batches(schema, table.to_batches())
    assert digest_batches(schema, shuffled.to_batches(max_chunksize=size)) == expected
    assert digest_batches(schema, shuffled.to_reader(max_chunksize=size), threads=2) == expected


@settings(max_examples=40)
@given(drawn=tables(max_rows=12), data=st.data())
def test_parts_add_up_and_can_be_taken_away(drawn: tuple[Schema, pa.Table], data: st.DataObject) -> None:
    schema, table = drawn
    cut = data.draw(st.integers(0, table.num_rows))
    whole, first, second = (
        digest_batches(schema, part.to_batches()) for part in (table, table.slice(0, cut), table.slice(cut))
    )
    assert first + second == whole
    assert whole - second == first
    assert whole - whole == EMPTY


def test_p03_locale_and_null_order_do_not_matter(documents: Documents) -> None:
    schema = Schema.declare({"k": "string"})
    keys = ["a", "B", "_", "é", "z", None, ""]
    rows = [{"k": key} for key in keys]
    documents.put(encoded(schema, arrow_table(schema, rows)))
    assert documents.digest(schema) == digest({"k": "string"}, *reversed(rows))


def test_very_wide_rows_agree(documents: Documents) -> None:
    columns = {f"c{number}": ("long", "string", "double")[number % 3] for number in range(300)}
    row = {
        name: {"long": at, "string": f"é{at}", "double": at / 7}[type_]
        for at, (name, type_) in enumerate(columns.items())
    }
    schema = Schema.declare(columns)
    documents.put(encoded(schema, arrow_table(schema, [row, dict.fromkeys(columns)])))
    assert documents.digest(schema) == digest(columns, row, dict.fromkeys(columns))


def test_no_rows() -> None:
    schema = Schema.declare({"x": "long"})
    assert digest_batches(schema, []) == EMPTY


def test_no_rows_in_postgres(documents: Documents) -> None:
    documents.put([])
    assert documents.digest(Schema.declare({"x": "long"})) == EMPTY


@pytest.mark.parametrize(
    ("type_", "left", "right"),
    [
        ("double", float("nan"), -float("nan")),
        ("double", 0.0, -0.0),
        ("float", 0.0, -0.0),
        ("decimal(5,2)", Decimal("0.00"), Decimal("-0.00")),
        ("list<double>", [-0.0], [0.0]),
        ("struct<a: list<double>>", {"a": [-0.0]}, {"a": [0.0]}),
    ],
)
def test_p01_u05_equal_values(type_: str, left: Any, right: Any) -> None:
    assert one(type_, left) == one(type_, right)


@pytest.mark.parametrize(
    ("type_", "left", "right"),
    [
        ("double", 0.7109375, 0.7109375000000001),
        ("double", 0.1 + 0.2, 0.3),
        ("double", 1e21, 1.0000000000000001e21),
        ("double", 5e-324, 0.0),
        ("double", float("inf"), float("-inf")),
        ("double", float("nan"), None),
        ("float", 0.1, 0.10000000894069672),
        ("decimal(3,2)", Decimal("-0.19"), Decimal("0.00")),
        ("decimal(3,2)", Decimal("-0.19"), Decimal("0.19")),
        ("decimal(38,38)", Decimal("1E-38"), Decimal("2E-38")),
        ("long", 2**53, 2**53 + 1),
        ("long", 0, None),
        ("string", None, ""),
        ("string", None, "NULL"),
        ("string", "é", "e\u0301"),
        ("string", "a", "a "),
        ("binary", None, b""),
        ("binary", b"\x00", b"\x00\x00"),
        ("timestamp", dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 1, 0, 0, 0, 1)),
        ("list<long>", None, []),
        ("list<long>", [], [None]),
        ("list<long>", [1, 2], [2, 1]),
        ("list<long>", [1], [1, None]),
        ("list<string>", ["a", "b"], ["ab"]),
        ("list<string>", ["1:a;s1:b"], ["a", "b"]),
        ("list<list<long>>", [[1], [2]], [[1, 2], []]),
        ("list<list<long>>", [[1, 2], []], [[1], [2]]),
        ("struct<x: long>", None, {"x": None}),
        ("struct<x: string, y: string>", {"x": "a", "y": None}, {"x": None, "y": "a"}),
        ("list<struct<x: long>>", [None], [{"x": None}]),
        ("json", None, "null"),
        ("list<json>", [None], ["null"]),
    ],
)
def test_p01_p05_u05_different_values(type_: str, left: Any, right: Any) -> None:
    assert one(type_, left) != one(type_, right)


def test_p01_scale_does_not_count() -> None:
    columns = ["decimal(2,1)", "decimal(38,37)", "decimal(18,4)"]
    assert len({one(type_, Decimal("1.1")) for type_ in columns}) == 1
    half = ["decimal(1,1)", "decimal(2,2)", "decimal(38,38)", "decimal(2,1)"]
    assert len({one(type_, Decimal("-0.5")) for type_ in half}) == 1
    assert one("decimal(3,0)", Decimal(5)) == one("decimal(38,37)", Decimal(5))


def test_e03_a_promotion_keeps_the_digest() -> None:
    assert one("int", -7) == one("long", -7)
    assert one("float", 0.1) == one("double", 0.10000000149011612)
    assert one("float", 0.1) != one("double", 0.1)
    assert one("decimal(5,2)", Decimal("1.23")) == one("decimal(10,2)", Decimal("1.23"))


def test_a_rename_keeps_the_digest() -> None:
    assert digest({"a": "long"}, {"a": 1}) == digest({"b": "long"}, {"b": 1})


def test_a_uuid_is_the_same_as_its_16_bytes() -> None:
    schema = Schema.declare({"u": "uuid"})
    table = arrow_table(schema, [{"u": uuid.uuid4().bytes}, {"u": None}])
    as_bytes = pa.table({"u": table["u"].combine_chunks().storage})
    assert digest_batches(schema, as_bytes.to_reader()) == digest_batches(schema, table.to_batches())


def test_p05_types_are_told_apart() -> None:
    when = dt.datetime(2024, 1, 1)
    found = [
        one("long", 1),
        one("double", 1.0),
        one("decimal(1,0)", Decimal(1)),
        one("string", "1"),
        one("binary", b"1"),
        one("json", "1"),
        one("list<long>", [1]),
        one("struct<a: long>", {"a": 1}),
        one("date", when.date()),
        one("timestamp", when),
        one("timestamptz", when.replace(tzinfo=dt.UTC)),
        one("long", None),
        one("string", None),
    ]
    assert len(set(found)) == len(found)


def test_p05_neither_repetition_nor_columns_cancel() -> None:
    one_column, two = {"a": "string"}, {"a": "string", "b": "string"}

    def of(*values: str) -> Digest:
        return digest(one_column, *({"a": value} for value in values))

    assert of("x", "x") != EMPTY
    assert of("a", "a", "b") != of("a", "b", "b")
    assert of("x", "x") - of("x") == of("x")
    pairs = [("ab", "c"), ("a", "bc"), ("c", "ab"), ("abc", None), (None, "abc"), ("", "abc")]
    assert len({digest(two, {"a": a, "b": b}) for a, b in pairs}) == len(pairs)
    swapped = {"b": "string", "a": "string"}
    assert digest(two, {"a": "x", "b": "y"}) != digest(swapped, {"a": "x", "b": "y"})


def test_p04_json_counts_by_value_and_text_by_bytes(documents: Documents) -> None:
    def of(text: str) -> Digest:
        return one("json", canonical_json(text))

    assert of('{"b":1,"a":2}') == of('{ "a": 2, "b": 1 }')
    assert of("1.0") == of("1.00") == of("1e0")
    assert of('{"a":1,"a":2}') == of('{"a":2}')
    assert of("[1,2]") != of("[2,1]")
    assert of('"1"') != of("1")
    assert one("string", '{"b":1}') != one("string", '{"b": 1}')
    schema = Schema.declare({"x": "json"})
    documents.put(['{"x":{"b":1,"a":2}}'])
    assert documents.digest(schema) == of('{"b":1,"a":2}')


def test_postgres_spreads_the_digest_over_workers(documents: Documents) -> None:
    """The rows may not be brought together before they are hashed, and the document is unpacked below the hash."""
    connection = documents.connection
    with connection.transaction():
        for setting in ("parallel_setup_cost", "parallel_tuple_cost", "min_parallel_table_scan_size"):
            connection.execute(f"SET LOCAL {setting} = 0")
        connection.execute("SET LOCAL max_parallel_workers_per_gather = 2")
        query = postgres_digest_sql(Schema.declare({"x": "long"}), ALL)
        plan = [row[0].strip() for row in connection.execute("EXPLAIN (COSTS OFF) " + query.as_string(None)).fetchall()]
    assert plan[-4:] == [
        "Workers Planned: 2",
        "->  Partial Aggregate",
        "->  Subquery Scan on documents",
        "->  Parallel Seq Scan on lakeward_documents",
    ]


def test_batches_are_taken_one_by_one() -> None:
    """Memory can't grow with the rows if no batch is kept."""
    schema = Schema.declare({"x": "string"})
    alive: list[int] = []
    pool = pa.default_memory_pool()
    before = pool.bytes_allocated()

    def batches() -> Iterator[pa.RecordBatch]:
        for _ in range(60):
            yield pa.record_batch({"x": pa.array(["y" * 500] * 2_000)})
            alive.append(pool.bytes_allocated() - before)

    assert digest_batches(schema, batches()).count == 120_000
    assert max(alive) < 20_000_000  # of 60 MB


@given(DIGESTS, DIGESTS)
def test_digests_are_a_group(left: Digest, right: Digest) -> None:
    assert left + EMPTY == left
    assert left + right == right + left
    assert (left + right) - right == left
    total = left + right
    assert 0 <= total.high < 2**64
    assert 0 <= total.low < 2**64


@given(DIGESTS)
def test_a_digest_reads_back_from_its_text(value: Digest) -> None:
    assert Digest.parse(str(value)) == value
    assert Digest.of_row([value.count, Decimal(value.high - 2**64), str(value.low)]) == value


@pytest.mark.parametrize("text", ["", "1", "1:abc", "x:" + "0" * 32, "1:" + "g" * 32])
def test_another_text_is_no_digest(text: str) -> None:
    with pytest.raises(UsageError, match="not a digest"):
        Digest.parse(text)


def test_the_digest_stays_what_it_was() -> None:
    """It is kept in the ledger: a change of any form would make every dataset look damaged. Here it is by hand."""
    columns = {
        "b": "boolean",
        "i": "int",
        "d": "double",
        "m": "decimal(5,2)",
        "s": "string",
        "x": "binary",
        "u": "uuid",
        "day": "date",
        "t": "time",
        "ts": "timestamp",
        "tz": "timestamptz",
        "l": "list<long>",
        "r": "struct<a: string>",
        "j": "json",
    }
    when = dt.datetime(1999, 12, 31, 23, 59, 59, 120)
    row = {
        "b": False,
        "i": -1,
        "d": 0.1,
        "m": Decimal("-0.10"),
        "s": "é;",
        "x": b"\xff",
        "u": bytes(16),
        "day": when.date(),
        "t": when.time(),
        "ts": when,
        "tz": when.replace(tzinfo=dt.UTC),
        "l": [1, None],
        "r": {"a": ""},
        "j": "[1]",
    }
    texts = [
        (
            f"bfalse;i-1;f{double(0.1)};d-0.10{'0' * 36};s3:é;;x=/w==;u{uuid.UUID(int=0)};D1999-12-31;T23:59:59.00012;"
            "t1999-12-31T23:59:59.000120;z1999-12-31T23:59:59.000120Z;l2:i1;i;;r{s0:;};j3:[1];"
        ),
        f"b;i;f;d{'0' * 36};s:;x;u;D;T;t;z;l;r;j:;",
    ]
    hashes = [hashlib.md5(text.encode()).digest() for text in texts]
    high, low = (sum(int.from_bytes(hashed[part]) for hashed in hashes) % 2**64 for part in (slice(8), slice(8, 16)))
    assert digest(columns, row, dict.fromkeys(columns)) == Digest(2, high, low)


def double(value: float) -> str:
    return base64.b64encode(struct.pack(">d", value)).decode()
