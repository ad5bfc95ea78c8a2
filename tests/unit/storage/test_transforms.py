"""Partition transforms of whole columns give what PyIceberg's give, value by value, and what the spec's table says."""

from __future__ import annotations

import datetime
import random
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg import types as iceberg
from pyiceberg.partitioning import _to_partition_representation
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    VoidTransform,
    YearTransform,
)

from lakeward.storage.arms.iceberg.murmur import hashes
from lakeward.storage.arms.iceberg.transforms import transformed

SEED = 20_260_704
UTC = datetime.UTC
TEXTS = [
    "",
    "a",
    "iceberg",
    "naïve",
    "日本語",
    "👩‍👩‍👧",
    "e\u0301",
    "\u0000",
    "x" * 511,
    "y" * 512,
    "z" * 513,
    "ü" * 3000,
]


def _numbers(bits: int) -> list[int]:
    chance = random.Random(SEED)
    edges = [0, 1, -1, 34, 2 ** (bits - 1) - 1]
    return [*edges, *(chance.randint(-(2 ** (chance.randint(1, bits - 1))), 2 ** (bits - 1) - 1) for _ in range(300))]


def _instants(zone: datetime.tzinfo | None) -> list[datetime.datetime]:
    chance = random.Random(SEED)
    epoch = datetime.datetime(1970, 1, 1, tzinfo=zone)
    day, micro = datetime.timedelta(days=1), datetime.timedelta(microseconds=1)
    edges = [epoch, epoch - micro, epoch - day, epoch - day - micro, datetime.datetime(1968, 2, 29, 23, tzinfo=zone)]
    ends = [datetime.datetime(1, 1, 1, tzinfo=zone), datetime.datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=zone)]
    return [*edges, *ends, *(epoch + micro * chance.randint(-(10**16), 10**16) for _ in range(300))]


def _decimals(precision: int, scale: int) -> list[Decimal]:
    chance = random.Random(SEED)
    top = 10**precision - 1
    whole = [0, 1, -1, 127, 128, -128, -129, 255, 256, 32767, -32768, -32769, top]
    whole += [chance.randint(-(10 ** chance.randint(1, precision - 1)), top) for _ in range(300)]
    return [Decimal(number).scaleb(-scale) for number in whole if abs(number) <= top]


COLUMNS: dict[str, tuple[iceberg.IcebergType, pa.DataType, list[Any]]] = {
    "boolean": (iceberg.BooleanType(), pa.bool_(), [True, False]),
    "int": (iceberg.IntegerType(), pa.int32(), _numbers(32)),
    "long": (iceberg.LongType(), pa.int64(), _numbers(64)),
    "decimal(9,2)": (iceberg.DecimalType(9, 2), pa.decimal128(9, 2), _decimals(9, 2)),
    "decimal(38,10)": (iceberg.DecimalType(38, 10), pa.decimal128(38, 10), _decimals(27, 10)),
    "string": (iceberg.StringType(), pa.large_string(), TEXTS),
    "short string": (iceberg.StringType(), pa.string(), TEXTS),
    "binary": (iceberg.BinaryType(), pa.large_binary(), [text.encode() for text in TEXTS] + [b"\xff\x00\xfe"]),
    "uuid": (iceberg.UUIDType(), pa.uuid(), [uuid.UUID(int=n * 7**40 % 2**128).bytes for n in range(100)]),
    "date": (iceberg.DateType(), pa.date32(), [each.date() for each in _instants(None)]),
    "time": (iceberg.TimeType(), pa.time64("us"), [each.time() for each in _instants(None)]),
    "timestamp": (iceberg.TimestampType(), pa.timestamp("us"), _instants(None)),
    "timestamptz": (iceberg.TimestamptzType(), pa.timestamp("us", "UTC"), _instants(UTC)),
}
TRANSFORMS: list[Transform[Any, Any]] = [
    IdentityTransform(),
    VoidTransform(),
    *(BucketTransform(number) for number in (1, 2, 16, 1000, 2**31 - 1)),
    *(TruncateTransform(number) for number in (1, 3, 10, 600)),
    YearTransform(),
    MonthTransform(),
    DayTransform(),
    HourTransform(),
]
PAIRS = [(name, transform) for transform in TRANSFORMS for name in COLUMNS if transform.can_transform(COLUMNS[name][0])]


@pytest.mark.parametrize(("name", "transform"), PAIRS, ids=[f"{transform!s}-{name}" for name, transform in PAIRS])
def test_columns_are_transformed_as_pyiceberg_does_values(name: str, transform: Transform[Any, Any]) -> None:
    type_, arrow, values = COLUMNS[name]
    with_nulls = [None, *values, None]
    # A slice, so that a position is not taken for an offset in memory.
    column = pa.array([values[0], *with_nulls], arrow).slice(1)
    one: Callable[[Any], Any] = transform.transform(type_)
    wanted = [_to_partition_representation(transform.result_type(type_), one(value)) for value in with_nulls]
    assert transformed(transform, column).to_pylist() == wanted


@pytest.mark.parametrize(
    ("values", "type_", "wanted"),
    [
        ([34], pa.int32(), 2017239379),
        ([34], pa.int64(), 2017239379),
        ([Decimal("14.20")], pa.decimal128(9, 2), -500754589),
        ([datetime.date(2017, 11, 16)], pa.date32(), -653330422),
        ([datetime.time(22, 31, 8)], pa.time64("us"), -662762989),
        ([datetime.datetime(2017, 11, 16, 22, 31, 8)], pa.timestamp("us"), -2047944441),
        ([datetime.datetime(2017, 11, 16, 22, 31, 8, 1)], pa.timestamp("us"), -1207196810),
        (["iceberg"], pa.large_string(), 1210000089),
        ([b"\x00\x01\x02\x03"], pa.binary(), -188683207),
        ([uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7").bytes], pa.binary(16), 1488055340),
    ],
)
def test_hashes_are_those_of_the_spec(values: list[Any], type_: pa.DataType, wanted: int) -> None:
    column = pa.array(values, type_)
    if pa.types.is_date(type_):
        column = column.cast(pa.int32())
    elif pa.types.is_temporal(type_):
        column = column.cast(pa.int64())
    assert hashes(column).tolist() == [wanted]


def test_nothing_is_transformed_to_nothing() -> None:
    for name, transform in PAIRS:
        assert len(transformed(transform, pa.array([], COLUMNS[name][1]))) == 0


@pytest.mark.parametrize(("type_", "least"), [(pa.int32(), -(2**31)), (pa.int64(), -(2**63))])
def test_number_too_small_to_truncate_is_refused(type_: pa.DataType, least: int) -> None:
    with pytest.raises(ValueError, match="truncated by 10"):
        transformed(TruncateTransform(10), pa.array([5, least], type_))
