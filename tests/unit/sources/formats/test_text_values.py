"""Text becomes a value of its type exactly, or is refused; and back."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lakeward.errors import SchemaError
from lakeward.sources.formats.text_values import Unconvertible, format_text, parse_text
from lakeward.types.logical import parse_type
from lakeward.types.table import arrow_type


@pytest.mark.parametrize(
    ("type_", "good", "bad"),
    [
        ("boolean", ["true", "FALSE"], ["1", "yes", " true"]),
        ("int", ["-2147483648", "+7", "007"], ["2147483648", "1.0", "0x10", " 1", "1e3", ""]),
        ("long", ["9223372036854775807"], ["9223372036854775808", "-", "١"]),
        ("float", ["16777216", "0.1", "inf"], ["16777217", "1e39", "1e-60", "x"]),
        ("double", ["nan", "-Infinity", "1e308", "0e-999", "1152921504606846976"], ["1e309", "1e-400", "1,5", "0x1p3"]),
        (
            "decimal(5,2)",
            ["999.99", "1.230", "1e2", "-.5", "0"],
            ["1000", "1.234", "1e3", "NaN", "Infinity", "1e99999"],
        ),
        ("decimal(38,30)", ["99999999.5", "1E-30"], ["1000000000000000000", "123456789", "1e-31"]),
        ("decimal(38,38)", ["0.5"], ["1", "5"]),
        ("date", ["0001-01-01", "9999-12-31"], ["2023-02-29", "0000-01-01", "01.02.2024", "2024-01-01T00:00"]),
        ("time", ["10:11", "23:59:59.999999"], ["24:00:00", "1:2:3", "10:11:12.1234567", "10:11:60"]),
        ("timestamp", ["2024-01-01", "2024-01-01T10:11:12.5"], ["2024-01-01T10:11:12Z", "0000-01-01 00:00:00"]),
        (
            "timestamptz",
            ["2024-01-01T10:11:12Z", "2024-01-01 10:11:12-0330"],
            ["2024-01-01T10:11:12", "0001-01-01T00:00:00+05:00", "9999-12-31T23:59:59-05:00"],
        ),
        ("uuid", ["12345678-1234-5678-1234-56781234567A"], ["12345678123456781234567812345678", "x"]),
        ("binary", ["AP8=", ""], ["AP8", "AP8*", "=", "AP8=\n"]),
        ("json", ["[1.50]", "null"], ["{", "NaN", "'a'"]),
    ],
)
def test_a_value_is_exact_or_refused(type_: str, good: list[str], bad: list[str]) -> None:
    parsed = parse_text(pa.array([*good, None]), type_)
    assert parsed.type == arrow_type(parse_type(type_))
    assert parsed.null_count == 1
    # As text, where a NaN equals itself.
    assert format_text(parse_text(format_text(parsed), type_)).equals(format_text(parsed))
    for value in bad:
        with pytest.raises(Unconvertible) as caught:
            parse_text(pa.array([None, *good, value, *good, value]), type_)
        assert (caught.value.index, caught.value.value) == (len(good) + 1, value)


def test_a_column_of_nulls_has_any_type() -> None:
    for type_ in ("boolean", "int", "double", "decimal(5,2)", "date", "time", "timestamptz", "uuid", "binary", "json"):
        assert parse_text(pa.nulls(2, pa.string()), type_).to_pylist() == [None, None]


def test_a_nested_type_has_no_text() -> None:
    with pytest.raises(SchemaError):
        parse_text(pa.array(["[1]"]), "list<long>")
    with pytest.raises(SchemaError):
        format_text(pa.array([[1]]))
