"""Type texts: what they mean, and that they read back."""

from __future__ import annotations

import pytest
from hypothesis import given

from lakeward.errors import SchemaError
from lakeward.types.logical import (
    MAX_NESTING,
    SIMPLE_TYPES,
    LogicalType,
    decimal,
    list_of,
    parse_type,
    simple,
    struct_of,
)
from support.rows import types


@given(types)
def test_every_type_reads_back_from_its_text(type_: LogicalType) -> None:
    assert parse_type(str(type_)) == type_


@pytest.mark.parametrize("kind", SIMPLE_TYPES)
def test_a_simple_type_is_its_name(kind: str) -> None:
    assert parse_type(f"  {kind} ") == simple(kind)


def test_blanks_and_quotes() -> None:
    text = ' struct< "a ""b": list < decimal( 18 ,4 ) >, c:long > '
    assert parse_type(text) == struct_of({'a "b': list_of(decimal(18, 4)), "c": simple("long")})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "bigint",
        "LONG",
        "long long",
        "list",
        "list<>",
        "list<long",
        "struct<>",
        "struct<a long>",
        "struct<a: long,>",
        "struct<a: long, a: int>",
        "decimal",
        "decimal(4)",
        "decimal(0,0)",
        "decimal(39,0)",
        "decimal(4,5)",
        "decimal(4,-1)",
        "long;",
    ],
)
def test_another_text_is_refused_by_name(text: str) -> None:
    with pytest.raises(SchemaError) as caught:
        parse_type(text)
    assert text.strip() in str(caught.value) or text in str(caught.value.fields["type"])


def test_decimals_have_up_to_38_digits() -> None:
    """T01: no declared decimal can overflow what holds it."""
    assert str(decimal(38, 38)) == "decimal(38,38)"
    for precision, scale in [(0, 0), (39, 0), (5, 6), (5, -1)]:
        with pytest.raises(SchemaError):
            decimal(precision, scale)


def test_nesting_ends() -> None:
    deepest = "list<" * MAX_NESTING + "long" + ">" * MAX_NESTING
    assert str(parse_type(deepest)) == deepest
    with pytest.raises(SchemaError, match="deeper"):
        parse_type(f"list<{deepest}>")


def test_an_unknown_simple_type() -> None:
    with pytest.raises(SchemaError, match="'varchar'"):
        simple("varchar")
