"""The logical type of what an input brings."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lakeward.errors import SchemaError
from lakeward.types.table import logical_type

NEAREST = [
    (pa.bool_(), "boolean"),
    (pa.int8(), "int"),
    (pa.int16(), "int"),
    (pa.int32(), "int"),
    (pa.uint8(), "int"),
    (pa.uint16(), "int"),
    (pa.uint32(), "long"),
    (pa.int64(), "long"),
    (pa.uint64(), "decimal(20,0)"),
    (pa.float16(), "float"),
    (pa.float32(), "float"),
    (pa.float64(), "double"),
    (pa.decimal32(9, 2), "decimal(9,2)"),
    (pa.decimal64(18, 4), "decimal(18,4)"),
    (pa.decimal128(38, 38), "decimal(38,38)"),
    (pa.decimal256(38, 3), "decimal(38,3)"),
    (pa.decimal128(5, -3), "decimal(8,0)"),
    (pa.string(), "string"),
    (pa.large_string(), "string"),
    (pa.string_view(), "string"),
    (pa.dictionary(pa.int8(), pa.string()), "string"),
    (pa.run_end_encoded(pa.int32(), pa.int64()), "long"),
    (pa.binary(), "binary"),
    (pa.large_binary(), "binary"),
    (pa.binary_view(), "binary"),
    (pa.binary(16), "binary"),
    (pa.uuid(), "uuid"),
    (pa.json_(), "json"),
    (pa.date32(), "date"),
    (pa.date64(), "date"),
    (pa.time32("s"), "time"),
    (pa.time64("ns"), "time"),
    (pa.timestamp("s"), "timestamp"),
    (pa.timestamp("ns"), "timestamp"),
    (pa.timestamp("ms", "Europe/Berlin"), "timestamptz"),
    (pa.list_(pa.int8()), "list<int>"),
    (pa.large_list(pa.string()), "list<string>"),
    (pa.list_(pa.int64(), 3), "list<long>"),
    (pa.list_view(pa.int64()), "list<long>"),
    (pa.struct([("a b", pa.list_(pa.date32()))]), 'struct<"a b": list<date>>'),
]


@pytest.mark.parametrize(("arrow", "expected"), NEAREST, ids=lambda value: str(value))
def test_the_nearest_type(arrow: pa.DataType, expected: str) -> None:
    assert str(logical_type(arrow)) == expected


@pytest.mark.parametrize(
    "arrow",
    [
        pa.null(),
        pa.duration("us"),
        pa.month_day_nano_interval(),
        pa.map_(pa.string(), pa.int64()),
        pa.struct([]),
        pa.decimal256(39, 0),
        pa.decimal128(5, 7),
        pa.list_(pa.duration("s")),
    ],
    ids=str,
)
def test_t01_no_type_is_refused_by_name(arrow: pa.DataType) -> None:
    with pytest.raises(SchemaError) as caught:
        logical_type(arrow)
    assert str(caught.value.fields["type"]) in str(arrow)
