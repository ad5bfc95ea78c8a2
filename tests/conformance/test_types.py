"""Every logical type with its extremes reads back exactly on every arm, and all arms agree on the digest."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import lakeward
from lakeward.types.conform import to_reader
from lakeward.types.digest import digest_batches
from lakeward.types.logical import SIMPLE_TYPES
from lakeward.types.schema import Schema
from support.arms import ArmUnderTest
from support.rows import arrow_table, tables

UTC = dt.UTC
EXTREMES: dict[str, list[Any]] = {
    "boolean": [True, False],
    "int": [-(2**31), 2**31 - 1, 0],
    "long": [-(2**63), 2**63 - 1, 2**53 + 1],
    "float": [3.4028234663852886e38, 1.401298464324817e-45, -0.0, float("inf"), float("-inf"), float("nan")],
    "double": [0.1 + 0.2, 5e-324, 1.7976931348623157e308, 1e21, 1e-7, -0.0, float("inf"), float("nan")],
    "decimal(38,0)": [Decimal(10**38 - 1), Decimal(-(10**38) + 1), Decimal(0)],
    "decimal(38,38)": [Decimal("0." + "9" * 38), Decimal("-0." + "9" * 38)],
    "decimal(1,0)": [Decimal(9), Decimal(-9)],
    "string": ["", " ", "null", '"', "\\", "\x01\x7f\n\r\t", "é", "é", "😀", "x" * 100_000],
    "binary": [b"", b"\0", b"\xff\xfe", bytes(range(256))],
    "uuid": [uuid.UUID(int=0).bytes, uuid.UUID(int=2**128 - 1).bytes],
    "date": [dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(1969, 12, 31), dt.date(1582, 10, 10)],
    "time": [dt.time(0), dt.time(23, 59, 59, 999_999)],
    "timestamp": [dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999_999), dt.datetime(1969, 12, 31, 23)],
    "timestamptz": [dt.datetime(1, 1, 1, tzinfo=UTC), dt.datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)],
    "json": ["null", "{}", "[]", '"text"', "1.5", '{"a": [1, {"b": null}]}', "0", "true", "[null]"],
    "list<int>": [[], [None], [1, None, -(2**31)]],
    "list<list<string>>": [[], [[]], [None, ["", None]]],
    "struct<a: long, b: struct<c: string>>": [{"a": None, "b": None}, {"a": 2**63 - 1, "b": {"c": None}}],
    "list<struct<a: uuid, b: decimal(5,2)>>": [[{"a": uuid.UUID(int=1).bytes, "b": Decimal("1.10")}, None]],
    'struct<"a.b": int, a_x2Eb: int, "1st": json>': [{"a.b": 1, "a_x2Eb": 2, "1st": "{}"}],
}


def test_the_extremes_cover_every_simple_type() -> None:
    assert set(SIMPLE_TYPES) <= set(EXTREMES)


@pytest.mark.parametrize("type_", EXTREMES)
def test_extremes_and_nulls_read_back_exactly(arm: ArmUnderTest, type_: str) -> None:
    dataset = arm.create({"value": type_, "other": "int"})
    values = [*EXTREMES[type_], None]
    given = arrow_table(dataset.schema, [{"value": value, "other": None} for value in values])
    dataset.write(given)
    assert_same_rows(dataset.to_arrow(identity=True), given)
    assert dataset.digest() == digest_batches(dataset.schema, given.to_reader())
    dataset.write(given)
    assert dataset.to_arrow().num_rows == 2 * len(values)


def test_a_column_of_nulls_alone(arm: ArmUnderTest) -> None:
    dataset = arm.create({f"c{number}": type_ for number, type_ in enumerate(EXTREMES)})
    given = arrow_table(dataset.schema, [dict.fromkeys(dataset.schema.names)] * 3)
    dataset.write(given)
    assert_same_rows(dataset.to_arrow(identity=True), given)


def test_rows_of_any_schema_are_the_same_everywhere(shared: lakeward.Workspace) -> None:
    """Hypothesis makes schemas and rows; every arm stores them, and all agree with the digest of the input."""

    # Not shrunk: each example makes real tables on every arm, and a shrink runs thousands.
    @settings(max_examples=12, phases=[Phase.explicit, Phase.reuse, Phase.generate])
    @given(tables(), st.integers(1, 4))
    def check(generated: tuple[Schema, pa.Table], batch_rows: int) -> None:
        schema, generated_rows = generated
        # As the write edge hands them on: JSON in its canonical text, say.
        given_rows = to_reader(generated_rows, schema, dataset="generated").read_all()
        expected = digest_batches(schema, given_rows.to_reader())
        columns = {column.name: column.type for column in schema.columns}
        for name in shared.storage.routing.arms:
            dataset = ArmUnderTest(shared, name).create(columns)
            batches = pa.RecordBatchReader.from_batches(generated_rows.schema, generated_rows.to_batches(batch_rows))
            dataset.write(batches, "replace", allow_empty=True)
            assert dataset.digest() == expected, name
            assert_same_rows(dataset.to_arrow(identity=True), given_rows)

    check()


def assert_same_rows(read: pa.Table, given: pa.Table) -> None:
    """Compare by position, bit for bit: equal Arrow data, NaN equal to NaN and 0.0 not to -0.0."""
    ordered = read.sort_by("__row_index").select(range(given.num_columns))
    assert ordered.schema.equals(given.schema)
    assert ordered.num_rows == given.num_rows
    for name, left, right in zip(given.column_names, ordered.columns, given.columns, strict=True):
        assert repr(left.to_pylist()) == repr(right.to_pylist()), name
