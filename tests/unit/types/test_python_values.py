"""`python_values`: Python values of every type, without loss or refused; and that Arrow's fate is the same."""

from __future__ import annotations

import uuid
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakeward.errors import ValueRefused
from lakeward.types.conform import conform
from lakeward.types.schema import Schema
from one_column import one, refusal, write


def test_e04_a_value_of_another_type_is_refused_late_in_a_stream() -> None:
    schema = Schema.declare({"qty": "long"})
    for bad in ("many", True, {"a": 1}, 1.0, Decimal(1), b"1", [1]):
        with pytest.raises(ValueRefused, match=r"row 4, column 'qty'.*, not a long"):
            write([{"qty": 1}, {"qty": None}, {"qty": 2}, {"qty": bad}], schema)


ALL_TYPES = {
    "boolean": [True, None, False],
    "int": [-(2**31), None, 2**31 - 1],
    "long": [2**63 - 1, None, -(2**63)],
    "float": [0.5, None, -0.0],
    "double": [0.1, None, 1e300],
    "decimal(4,0)": [Decimal(2013), None, Decimal(-1)],
    "decimal(20,18)": [Decimal("0.123456789012345678"), None, Decimal(1)],
    "decimal(38,38)": [Decimal("1E-38"), None, Decimal("0." + "9" * 38)],
    "string": ["", None, "😀"],
    "binary": [b"", None, b"\0\xff"],
    "uuid": [uuid.UUID(int=0), None, uuid.UUID(int=2**128 - 1)],
    "date": [date.min, None, date.max],
    "time": [time.min, None, time.max],
    "timestamp": [datetime.min, None, datetime.max],
    "timestamptz": [datetime.min.replace(tzinfo=UTC), None, datetime.max.replace(tzinfo=UTC)],
    "json": ["[]", None, '{"a": 1}'],
    "list<decimal(3,1)>": [[Decimal("1.5"), None], None, []],
    "struct<a: uuid, b: list<date>>": [{"a": uuid.UUID(int=1), "b": [None]}, None, {"a": None, "b": None}],
}


@pytest.mark.parametrize("type_", ALL_TYPES)
def test_t09_every_type_goes_through_unchanged_from_python_and_from_arrow(type_: str) -> None:
    values = ALL_TYPES[type_]
    assert one(values, type_) == values
    assert one([None], type_) == [None]
    schema = Schema.declare({"v": type_})
    batch = write([{"v": value} for value in values], schema).to_batches()[0]
    for part in (batch, batch.slice(1), batch.slice(1, 1), batch.slice(3)):
        again = conform(part, schema, dataset="d", first_row=1)
        assert again.equals(part)
        assert again is part or type_ == "json"


@given(st.decimals(allow_nan=False, allow_infinity=False), st.integers(1, 38), st.data())
def test_t01_a_python_decimal_is_exact_or_refused(value: Decimal, precision: int, data: st.DataObject) -> None:
    scale = data.draw(st.integers(0, precision))
    _, digits, exponent = value.as_tuple()
    number = int("".join(map(str, digits)))
    # The value in units of the scale, by integers alone, because Decimal's context would round.
    shift = int(exponent) + scale
    if number == 0 or -400 < shift < 400:
        units, rest = (number * 10**shift, 0) if shift >= 0 else divmod(number, 10**-shift) if number else (0, 0)
        fits = rest == 0 and units < 10**precision if number else True
    else:
        fits = False
    if fits:
        (result,) = one([value], f"decimal({precision},{scale})")
        assert result == value
    else:
        assert refusal([value], f"decimal({precision},{scale})").fields["row"] == 1


def test_t02_decimal_nan_and_infinity_are_refused_and_float_specials_kept() -> None:
    for text in ("NaN", "Infinity", "-Infinity", "sNaN"):
        assert refusal([Decimal(1), Decimal(text)], "decimal(5,2)").fields["row"] == 2
    inf = float("inf")
    kept = one([float("nan"), inf, -inf, -0.0, 1], "double")
    assert kept[0] != kept[0] and kept[1:3] == [inf, -inf] and str(kept[3]) == "-0.0" and kept[4] == 1.0
    kept = one(pa.array([float("nan"), inf, -0.0]), "float")
    assert kept[0] != kept[0] and kept[1] == inf and str(kept[2]) == "-0.0"
    assert "not exact as float" in refusal([0.1], "float").message
    assert "not exact as double" in refusal([2**53 + 1], "double").message


def test_zones_of_python_datetimes() -> None:
    plus = timezone(timedelta(hours=1))
    berlin = datetime(2024, 10, 27, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Berlin"))
    odd = datetime(2020, 1, 1, tzinfo=timezone(timedelta(microseconds=5)))
    values = [datetime(2020, 1, 1, tzinfo=plus), berlin, odd]
    # In UTC, because Python calls no time of another zone equal to one in the repeated hour.
    assert one([*values, None], "timestamptz") == [*(value.astimezone(UTC) for value in values), None]
    assert one([berlin, None], "timestamptz") == [berlin.astimezone(UTC), None]

    class Silent(tzinfo):
        def utcoffset(self, moment: datetime | None) -> None:
            return None

        dst = utcoffset

        def tzname(self, moment: datetime | None) -> str:
            return "silent"

    for naive in (datetime(2020, 1, 1), datetime(2020, 1, 1, tzinfo=Silent())):
        assert "has no zone" in refusal([berlin, naive], "timestamptz").message
    assert "has a zone" in refusal([datetime(2020, 1, 1), berlin], "timestamp").message
    assert "has a zone" in refusal([time(1, tzinfo=UTC)], "time").message
    assert "years 1 to 9999" in refusal([datetime(1, 1, 1, tzinfo=plus)], "timestamptz").message
    assert refusal([datetime(2020, 1, 1)], "date").fields["row"] == 1
    assert refusal([date(2020, 1, 1)], "timestamp").fields["row"] == 1


@pytest.mark.parametrize("bad", ["a\0b", "\0", "é\0"])
def test_t06_nul_in_text_is_refused(bad: str) -> None:
    for values in (["é", None, bad], ["x", "", bad, "y"]):
        row = values.index(bad) + 1
        assert refusal(values, "string").fields["row"] == row
        for type_ in (pa.string(), pa.large_string(), pa.string_view()):
            array = pa.array(values, type_)
            assert refusal(array, "string").fields["row"] == row
            assert one(array.slice(0, row - 1), "string") == values[: row - 1]
            assert one(array.slice(row), "string") == values[row:]
        assert refusal([values], "list<string>").fields["column"] == f"v[{row - 1}]"
    assert "NUL" in refusal([{"a": bad}], "json").message
    assert "NUL" in refusal([{bad: 1}], "json").message


def test_t06_half_surrogate_pairs_are_refused() -> None:
    assert "surrogate" in refusal(["a", "\ud83d"], "string").message
    assert "surrogate" in refusal([r'"\ud83d"'], "json").message
    assert "surrogate" in refusal([["\ud83d"]], "json").message
    assert one([r'"\ud83d\ude00"', '"😀"'], "json") == ['"😀"', '"😀"']


def test_t07_p04_json_columns_hold_the_canonical_text() -> None:
    texts = ['{"b":1,"a":9007199254740993}', "null", " [1.10] ", '{"b":1,"a":9007199254740993}', '"null"']
    result = ['{"a": 9007199254740993, "b": 1}', "null", "[1.1]", '{"a": 9007199254740993, "b": 1}', '"null"']
    assert one(texts, "json") == result
    assert one(pa.array(texts), "json") == result
    python = [{"b": 1.5, "a": [None]}, [], 12, None, True]
    assert one(python, "json") == ['{"a": [null], "b": 1.5}', "[]", "12", None, "true"]
    assert "is not JSON" in refusal(pa.array(["1", "{"]), "json").message
    assert "is not JSON" in refusal(["plain text"], "json").message
    assert "nan, which JSON has not" in refusal([{"a": float("nan")}], "json").message


def test_uuids_from_text() -> None:
    value = uuid.UUID("0123ABCD-89ab-cdef-0123-456789abcdef")
    texts = [str(value).upper(), None, str(value)]
    assert one(texts, "uuid") == [value, None, value]
    assert one(pa.array(["x", *texts])[1:], "uuid") == [value, None, value]
    assert one([value, None, str(value)], "uuid") == [value, None, value]
    for bad in ("", value.hex, f"{{{value}}}", f"urn:uuid:{value}", "x" * 36, f"{value}\n"):
        assert refusal([value, bad], "uuid").fields["row"] == 2
        assert refusal(pa.array([str(value), bad]), "uuid").fields["row"] == 2


def test_python_subclasses_and_numpy_scalars() -> None:
    class Word(str):
        def __str__(self) -> str:
            return "other"

    assert one([Word("w"), None], "string") == ["w", None]
    assert one([np.int64(5), 6], "long") == [5, 6]
    assert one([np.float32(0.1), np.int8(1)], "double") == [float(np.float32(0.1)), 1.0]
    assert one([np.bool_(True)], "boolean") == [True]
    assert one([bytearray(b"a"), memoryview(b"b")], "binary") == [b"a", b"b"]
    assert one([np.array([1, 2]), (3,)], "list<long>") == [[1, 2], [3]]
    assert "unexpected ['x']" in refusal([{"a": 1, "x": 2}], "struct<a: long>").message
    assert "lacks ['b']" in refusal([{"a": 1}], "struct<a: long, b: long>").message
