"""`arrow_values`: Arrow arrays of every layout, without loss or refused."""

from __future__ import annotations

import uuid
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakeward.errors import ColumnMismatch, ValueRefused
from lakeward.types.conform import to_reader
from lakeward.types.schema import Schema
from one_column import ints, one, refusal, write


@pytest.mark.parametrize(
    ("array", "type_"),
    [
        (pa.array(["1"]), "long"),
        (pa.array([True]), "long"),
        (pa.array([1]), "boolean"),
        (pa.array([1.0]), "long"),
        (pa.array([1.0]), "decimal(5,2)"),
        (pa.array([Decimal("1.0")]), "long"),
        (pa.array([Decimal("1.0")]), "double"),
        (pa.array([1]), "string"),
        (pa.array([b"x"]), "string"),
        (pa.array(["x"]), "binary"),
        (pa.array(["2020-01-01"]), "date"),
        (pa.array([date(2020, 1, 1)]), "timestamp"),
        (pa.array([datetime(2020, 1, 1)]), "date"),
        (pa.array([datetime(2020, 1, 1)]), "timestamptz"),
        (pa.array([datetime(2020, 1, 1, tzinfo=UTC)]), "timestamp"),
        (pa.array([1]), "time"),
        (pa.array([1]), "list<long>"),
        (pa.array([{"a": 1}]), "struct<b: long>"),
        (pa.array([{"a": 1}]), "struct<a: long, b: long>"),
        (pa.array([{"a": "x"}]), "struct<a: long>"),
        (pa.array([["x"]]), "list<long>"),
        (pa.array([{"a": 1}]), "json"),
        (pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())), "list<struct<key: string, value: long>>"),
        (pa.array([True]).cast(pa.bool8()), "long"),
        (pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])]), "long"),
        (pa.DictionaryArray.from_arrays(pa.array([0]), pa.array([["x"]])), "list<long>"),
        (pa.array([timedelta(1)]), "long"),
    ],
)
def test_e04_an_arrow_type_without_conversion_is_refused_before_anything_is_read(array: pa.Array, type_: str) -> None:
    schema = Schema.declare({"v": type_})
    with pytest.raises(ColumnMismatch, match=r"column 'v.*' is .* but the input has .* not converted") as caught:
        to_reader(pa.table({"v": array.slice(0, 0)}), schema, dataset="main.sales.orders")
    assert str(caught.value.fields["column"]).startswith("v")


@pytest.mark.parametrize(
    ("array", "type_", "bad"),
    [
        (pa.array([1, 2**31]), "int", 2),
        (pa.array([1, 2**63], pa.uint64()), "long", 2),
        (pa.array([Decimal(1), Decimal(2**63)]), "long", 2),
        (pa.array([1, 1000]), "decimal(5,2)", 2),
        (pa.array([1, 10**18]), "decimal(38,30)", 2),
        (pa.array([Decimal("1.00"), Decimal("1.01")]), "decimal(5,1)", 2),
        (pa.array([Decimal("1"), Decimal("1e38")], pa.decimal256(76, 0)), "decimal(38,38)", 1),
        (pa.array([2**53, 2**53 + 1]), "double", 2),
        (pa.array([2**24, 2**24 + 1]), "float", 2),
        (pa.array([1.5, 0.1]), "float", 2),
        (pa.array([1.5, 1e300]), "float", 2),
    ],
)
def test_t01_no_number_is_rounded_or_wrapped(array: pa.Array, type_: str, bad: int) -> None:
    assert refusal(array, type_).fields["row"] == bad


def test_t01_a_decimal_beyond_its_own_precision_is_refused() -> None:
    wrong = pa.Array.from_buffers(pa.decimal128(3, 0), 1, [None, pa.py_buffer((100_000).to_bytes(16, "little"))])
    assert "does not fit decimal(3,0)" in refusal(wrong, "decimal(3,0)").message


@pytest.mark.parametrize(
    ("array", "type_", "result"),
    [
        (pa.array([1, None], pa.uint8()), "int", [1, None]),
        (pa.array([2**63 - 1, None], pa.uint64()), "long", [2**63 - 1, None]),
        (pa.array([Decimal(2**63 - 1)], pa.decimal128(38, 0)), "long", [2**63 - 1]),
        (pa.array([2**64 - 1], pa.uint64()), "decimal(38,2)", [Decimal(2**64 - 1)]),
        (pa.array([Decimal("1.50"), None], pa.decimal256(60, 30)), "decimal(2,1)", [Decimal("1.5"), None]),
        (pa.array([Decimal("1.5")], pa.decimal32(5, 2)), "decimal(38,36)", [Decimal("1.5")]),
        (pa.array([2**53, 2**60, -(2**63)]), "double", [2.0**53, 2.0**60, -(2.0**63)]),
        (pa.array([2**60]), "float", [2.0**60]),
        (pa.array([0.5, None, float("inf"), -0.0]), "float", [0.5, None, float("inf"), 0.0]),
        (pa.array([np.float32(0.1)]), "double", [float(np.float32(0.1))]),
        (pa.array([np.float16(1.5)]), "float", [1.5]),
        (pa.array(["a", None, "a"]).dictionary_encode(), "string", ["a", None, "a"]),
        (pc.run_end_encode(pa.array([1, 1, None]))[1:], "long", [1, None]),
        (pa.array(["a", None], pa.large_string()), "string", ["a", None]),
        (pa.array(["ö", None], pa.string_view())[:1], "string", ["ö"]),
        (pa.array([b"ab"], pa.binary(2)), "binary", [b"ab"]),
        (pa.array([b"ab"], pa.binary_view()), "binary", [b"ab"]),
        (pa.array([b"0" * 16, None], pa.binary(16)), "uuid", [uuid.UUID(bytes=b"0" * 16), None]),
        (pa.array(['{"b": 1, "a": 1.0}', "null", None], pa.json_()), "json", ['{"a": 1, "b": 1}', "null", None]),
        (pa.array([date(2020, 1, 1)], pa.date64()), "date", [date(2020, 1, 1)]),
        (pa.array([time(1, 2)], pa.time32("s")), "time", [time(1, 2)]),
        (pa.array([datetime(2020, 1, 1)], pa.timestamp("ns")), "timestamp", [datetime(2020, 1, 1)]),
        (pa.array([0], pa.timestamp("s", "Europe/Berlin")), "timestamptz", [datetime(1970, 1, 1, tzinfo=UTC)]),
        (pa.array([[1, 2], None], pa.list_(pa.int8(), 2)), "list<long>", [[1, 2], None]),
        (pa.array([[1], None, [2]], pa.list_view(pa.int8()))[1:], "list<long>", [None, [2]]),
        (pa.array([["a"], [None]], pa.large_list(pa.large_string())), "list<string>", [["a"], [None]]),
        (
            pa.array([{"b": "x", "a": 1}, None, {}]),
            "struct<a: int, b: string>",
            [{"a": 1, "b": "x"}, None, {"a": None, "b": None}],
        ),
        (pa.nulls(2), "struct<a: list<uuid>>", [None, None]),
    ],
)
def test_t09_conversions_without_loss(array: pa.Array, type_: str, result: list[object]) -> None:
    assert one(array, type_) == result


@st.composite
def _decimal_conversions(draw: st.DrawFn) -> tuple[int, pa.DataType, int, int]:
    make = draw(st.sampled_from([pa.decimal32, pa.decimal64, pa.decimal128, pa.decimal256]))
    most = {pa.decimal32: 9, pa.decimal64: 18, pa.decimal128: 38, pa.decimal256: 76}[make]
    precision = draw(st.integers(1, most))
    scale = draw(st.integers(0, precision))
    digits = draw(st.integers(0, precision))
    zeros = draw(st.integers(0, digits))
    units = draw(st.integers(-(10 ** (digits - zeros)) + 1, 10 ** (digits - zeros) - 1)) * 10**zeros
    target = draw(st.integers(1, 38))
    return units, make(precision, scale), target, draw(st.integers(0, target))


@given(_decimal_conversions())
def test_t01_an_arrow_decimal_is_exact_or_refused(case: tuple[int, pa.DataType, int, int]) -> None:
    units, source, precision, scale = case
    digits = tuple(map(int, str(abs(units))))
    array = pa.array([Decimal((int(units < 0), digits, -source.scale))], source)
    shift = scale - source.scale
    wanted, rest = (units * 10**shift, 0) if shift >= 0 else divmod(units, 10**-shift)
    if rest == 0 and abs(wanted) < 10**precision:
        (result,) = one(array, f"decimal({precision},{scale})")
        assert int(result.scaleb(scale)) == wanted
    else:
        assert refusal(array, f"decimal({precision},{scale})").fields["row"] == 1


@pytest.mark.parametrize(
    ("array", "type_"),
    [
        (ints(0, 2**31 - 1, type_=pa.date32()), "date"),
        (ints(0, -719_163, type_=pa.date32()), "date"),
        (ints(0, 2_932_897, type_=pa.date32()), "date"),
        (ints(0, 86_400_005, type_=pa.date64()), "date"),
        (ints(0, 2**63 - 1, type_=pa.timestamp("us")), "timestamp"),
        (ints(0, 2**63 - 1, type_=pa.timestamp("us", "UTC")), "timestamptz"),
        (ints(0, 253_402_300_800_000_000, type_=pa.timestamp("us", "UTC")), "timestamptz"),
        (ints(0, -62_135_596_800_000_001, type_=pa.timestamp("us", "UTC")), "timestamptz"),
        (ints(0, 2**62, type_=pa.timestamp("s")), "timestamp"),
        (ints(0, 1, type_=pa.timestamp("ns")), "timestamp"),
        (ints(0, 1, type_=pa.time64("ns")), "time"),
        (ints(0, 86_400_000_000, type_=pa.time64("us")), "time"),
        (ints(0, -1, type_=pa.time64("us")), "time"),
    ],
)
def test_t03_dates_instants_and_times_out_of_range_are_refused(array: pa.Array, type_: str) -> None:
    error = refusal(array, type_)
    assert error.fields["row"] == 2
    assert error.fields["value"]


def test_t03_postgres_infinities_and_24_00_from_duckdb_are_refused() -> None:
    for sql, type_ in (
        ("date 'infinity'", "date"),
        ("date '0044-03-15 (BC)'", "date"),
        ("timestamp 'infinity'", "timestamp"),
        ("timestamptz '-infinity'", "timestamptz"),
        ("time '24:00'", "time"),
    ):
        with pytest.raises(ValueRefused), duckdb.connect() as connection:
            write(connection.sql(f"select {sql} v"), Schema.declare({"v": type_}))


def test_t06_invalid_utf8_in_an_arrow_buffer_is_refused() -> None:
    raw = pa.array([b"ok", None, b"\xed\xa0\x80", b"\xff"])
    error = refusal(raw.view(pa.string()), "string")
    assert (error.fields["row"], error.fields["value"]) == (3, r"b'\xed\xa0\x80'")
    assert refusal(raw.slice(3).view(pa.string()), "string").fields["row"] == 1
    assert refusal(pa.array([b"\xff"], pa.large_binary()).view(pa.large_string()), "json").fields["row"] == 1


def test_what_lies_under_a_null_is_not_judged() -> None:
    buffers = [pa.py_buffer(b"\x01"), pa.py_buffer(np.array([0, 1, 3], np.int32)), pa.py_buffer(b"a\xff\0")]
    assert one(pa.Array.from_buffers(pa.string(), 2, buffers), "string") == ["a", None]
    hidden = pa.StructArray.from_arrays([pa.array(["a", "\0"])], names=["a"], mask=pa.array([False, True]))
    assert one(hidden, "struct<a: string>") == [{"a": "a"}, None]
    hidden = pa.ListArray.from_arrays(
        pa.array([0, 1, 2], pa.int32()), pa.array(["a", "\0"]), mask=pa.array([False, True])
    )
    assert one(hidden, "list<string>") == [["a"], None]


def test_a_duckdb_sum_of_integers_fits_a_long() -> None:
    with duckdb.connect() as connection:
        relation = connection.sql("select sum(i) v from range(10) t(i)")
        assert write(relation, Schema.declare({"v": "long"})).to_pylist() == [{"v": 45}]
