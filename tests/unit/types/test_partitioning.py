"""What may be declared as a partition, and how it is read and written."""

from __future__ import annotations

import pytest

from lakeward.errors import SchemaError
from lakeward.types.partitioning import PartitionField, declare_partitions, parse_partition_field
from lakeward.types.schema import Schema

SCHEMA = Schema.declare(
    {
        "id": "long",
        "ts": "timestamptz",
        "day": "date",
        "at": "time",
        "region": "string",
        "price": "double",
        "paid": "boolean",
        "doc": "json",
        "tags": "list<string>",
        "two words": "string",
        'od"d, (x)': "decimal(9,2)",
    }
)


@pytest.mark.parametrize(
    ("text", "column", "transform", "number", "plain"),
    [
        ("region", "region", "identity", None, "region"),
        (" identity( region ) ", "region", "identity", None, "region"),
        ("BUCKET(16,id)", "id", "bucket", 16, "bucket(16, id)"),
        ("truncate( 4 , region )", "region", "truncate", 4, "truncate(4, region)"),
        ("day(ts)", "ts", "day", None, "day(ts)"),
        ("two words", "two words", "identity", None, '"two words"'),
        ('bucket(4, "two words")', "two words", "bucket", 4, 'bucket(4, "two words")'),
        ('truncate(10, "od""d, (x)")', 'od"d, (x)', "truncate", 10, 'truncate(10, "od""d, (x)")'),
        ('"day(ts)"', "day(ts)", "identity", None, '"day(ts)"'),
    ],
)
def test_texts_are_read_and_written(text: str, column: str, transform: str, number: int | None, plain: str) -> None:
    field = parse_partition_field(text)
    assert field == PartitionField(column, transform, number)
    assert str(field) == plain
    assert parse_partition_field(plain) == field


@pytest.mark.parametrize(
    ("declared", "why"),
    [
        (["nowhere"], "'nowhere' is not a column"),
        (["ID"], "'ID' is not a column"),
        (["week(ts)"], "'week' is no transform"),
        (["void(ts)"], "'void' is no transform"),
        (["bucket(id)"], "bucket takes a number and a column"),
        (["day(3, ts)"], "day takes a column"),
        (["bucket(0, id)"], "the number of bucket is 1 to"),
        (["truncate(2147483648, id)"], "the number of truncate is 1 to"),
        (["price"], "is a double, which identity does not take"),
        (["bucket(4, price)"], "is a double, which bucket does not take"),
        (["truncate(4, price)"], "is a double"),
        (["doc"], "is a json"),
        (["tags"], "is a list"),
        (["hour(day)"], "is a date, which hour does not take"),
        (["day(at)"], "is a time, which day does not take"),
        (["truncate(2, ts)"], "is a timestamptz, which truncate does not take"),
        (["bucket(2, paid)"], "is a boolean, which bucket does not take"),
        (["region", "region"], "divides by the same|is there, too"),
        (["day(ts)", "hour(ts)"], "divides by the same"),
        (["bucket(2, id)", "bucket(4, id)"], "is there, too"),
        (["bucket(2, id"], "neither a column nor a transform"),
        ([""], "neither a column nor a transform"),
        (["day()"], "neither a column nor a transform"),
    ],
)
def test_what_can_not_be_partitioned_by_is_refused_by_name(declared: list[str], why: str) -> None:
    with pytest.raises(SchemaError, match=why) as raised:
        declare_partitions(declared, SCHEMA, "main.s.d")
    assert f"dataset main.s.d: can't partition by {declared[-1]!r}" in raised.value.message


def test_one_text_is_no_list() -> None:
    with pytest.raises(SchemaError, match="is a list of texts"):
        declare_partitions("day(ts)", SCHEMA)


def test_one_column_may_be_divided_in_different_ways() -> None:
    declared = ["bucket(16, id)", "truncate(100, id)", "id", "month(ts)", "region"]
    assert declare_partitions(declared, SCHEMA) == tuple(declared)
