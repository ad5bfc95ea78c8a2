"""Texts that the Postgres arm delivers: exact or an error, never something near."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

from lakeward.types.logical import parse_type
from lakeward.types.table import arrow_type, rule_of

EXACT = [
    ("long", "9007199254740993", 9007199254740993),
    ("double", "Infinity", float("inf")),
    ("double", "0." + "0" * 323 + "49406564584124654", 5e-324),
    ("double", "1" + "0" * 308, 1e308),
    ("float", "0.10000000149011612", 0.10000000149011612),
    ("time", "23:59:59.999999", dt.time(23, 59, 59, 999999)),
    ("time", "12:00:00.5", dt.time(12, 0, 0, 500000)),
    ("time", "00:00:00", dt.time(0)),
    ("date", "0001-01-01", dt.date(1, 1, 1)),
    ("timestamp", "9999-12-31T23:59:59.999999", dt.datetime(9999, 12, 31, 23, 59, 59, 999999)),
    ("binary", "AAH/", b"\x00\x01\xff"),
    ("binary", "", b""),
]

WRONG = [
    ("boolean", "yes"),
    ("int", "2147483648"),
    ("long", "1.0"),
    ("long", "1e3"),
    ("decimal(5,2)", "1.234"),
    ("decimal(5,2)", "1234.5"),
    ("decimal(5,2)", "NaN"),
    ("binary", "AAH"),
    ("binary", "AA H/"),
    ("uuid", "0000"),
    ("uuid", "zz000000-0000-0000-0000-000000000000"),
    ("date", "infinity"),
    ("time", "24:00:01"),
    ("timestamp", "infinity"),
    ("timestamp", "10000-01-01T00:00:00.000000"),
    ("timestamp", "2024-01-01T00:00:00.000000Z"),
    ("timestamptz", "2024-01-01T00:00:00.000000"),
    ("timestamptz", "-infinity"),
]


def parsed(type_text: str, *texts: str | None) -> list[Any]:
    type_ = parse_type(type_text)
    parse = rule_of(type_).parse
    assert parse is not None
    array = parse(pa.array(texts, pa.string()), arrow_type(type_))
    assert array.type == arrow_type(type_)
    return list(array.to_pylist())


@pytest.mark.parametrize(("type_text", "text", "value"), EXACT)
def test_exact_and_null_stays_null(type_text: str, text: str, value: Any) -> None:
    assert parsed(type_text, None, text, None) == [None, value, None]


@pytest.mark.parametrize(("type_text", "text"), WRONG)
def test_t03_what_is_no_value_is_an_error(type_text: str, text: str) -> None:
    with pytest.raises((pa.ArrowInvalid, ValueError)):
        parsed(type_text, text)


def test_uuids() -> None:
    text = "00112233-4455-6677-8899-aabbccddeeff"
    assert [str(value) for value in parsed("uuid", None, text)] == ["None", text]
    assert parsed("uuid", None) == [None]
    assert parsed("uuid") == []
