"""`json_text`: one text per JSON value, the one that PostgreSQL prints."""

from __future__ import annotations

import json
from decimal import Decimal

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakeward.errors import ValueRefused
from lakeward.types.json_text import MAX_JSON_DEPTH, canonical_json, json_of

# Text that PostgreSQL can hold: no NUL, no half of a surrogate pair.
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)


def _plain_number(digits: int, places: int) -> str:
    """Return `digits / 10**places` in plain notation without zeros that say nothing."""
    text = format(Decimal(digits).scaleb(-places), "f")
    return (text.rstrip("0").rstrip(".") if "." in text else text) if digits else "0"


PLAIN_NUMBERS = st.builds(_plain_number, st.integers(-(10**27), 10**27), st.integers(0, 27))
SPACE = st.sampled_from(["", " ", "\n", "\t", "\r"])


@st.composite
def _text_of(draw: st.DrawFn, scalars: st.SearchStrategy[str]) -> str:
    """JSON text with free spacing, escapes and repeated keys."""
    strings = st.builds(lambda text, ascii_: json.dumps(text, ensure_ascii=ascii_), TEXT, st.booleans())
    leaves = st.one_of(scalars, strings, st.sampled_from(["null", "true", "false"]))

    def nested(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        pair = st.builds(lambda key, left, right, value: f"{key}{left}:{right}{value}", strings, SPACE, SPACE, inner)
        return st.one_of(
            st.builds(lambda items, gap: f"[{gap}{f'{gap},'.join(items)}]", st.lists(inner, max_size=4), SPACE),
            st.builds(lambda items, gap: f"{{{gap}{f',{gap}'.join(items)}{gap}}}", st.lists(pair, max_size=5), SPACE),
        )

    return draw(st.recursive(leaves, nested, max_leaves=12))


JSON_NUMBERS = st.from_regex(r"-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,2})?", fullmatch=True)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ('{"b":1,"a":2}', '{"a": 2, "b": 1}'),
        ('{ "a" : 2 , "b" : 1 }', '{"a": 2, "b": 1}'),
        ('{"a":1,"a":2}', '{"a": 2}'),
        ("[2,1]", "[2, 1]"),
        ('"1"', '"1"'),
        ('{"bb":1,"c":2,"é":3,"z":4}', '{"c": 2, "z": 4, "bb": 1, "é": 3}'),
        (r'"\/\u00e9\t\u0001\u007f\ud83d\ude00"', '"/é\\t\\u0001\x7f😀"'),
        (r'"\\u0000123\\u0000"', r'"\\u0000123\\u0000"'),
    ],
)
def test_p04_key_order_spacing_and_repeated_keys(text: str, canonical: str) -> None:
    assert canonical_json(text) == canonical


@pytest.mark.parametrize("text", ["1", "1.0", "1.00", "1e0", "10e-1", "0.1E+1", "1" + ".0" * 1])
def test_p04_numbers_are_equal_by_value(text: str) -> None:
    assert canonical_json(text) == "1"


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("9007199254740993", "9007199254740993"),
        ("12345678901234567890123", "12345678901234567890123"),
        ("1.10", "1.1"),
        ("-0", "0"),
        ("-0.0e5", "0"),
        ("0e999999999999999999999", "0"),
        ("123456789.12345678901234567890", "123456789.1234567890123456789"),
        ("1e21", "1" + "0" * 21),
        ("1.5e-7", "0.00000015"),
        ("-1.25E2", "-125"),
        ("9" * 1000, "9" * 1000),
        ("1e999", "1" + "0" * 999),
        ("1e-999", "0." + "0" * 998 + "1"),
    ],
)
def test_t07_numbers_keep_every_digit(text: str, canonical: str) -> None:
    assert canonical_json(text) == canonical


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (r'{"t": "a\u0000b"}', "NUL"),
        (r'{"a\u0000b": 1}', "NUL"),
        ('"a\0b"', "not JSON"),
        (r'"\ud83d"', "surrogate"),
        (r'{"\ude00": 1, "b": 2}', "surrogate"),
        (r'"\ude00\ud83d"', "surrogate"),
        ('"\ud83d"', "surrogate"),
        (r'["\u0000123\u0000"]', "NUL"),
    ],
)
def test_t06_nul_and_half_pairs_are_refused(text: str, reason: str) -> None:
    with pytest.raises(ValueRefused, match=reason):
        canonical_json(text)


@pytest.mark.parametrize(
    "text",
    ["", " ", "NaN", "-Infinity", "[1,]", '{"a":1,}', "{'a': 1}", "01", "1.", ".5", "+1", "1 2", "tru", "\ufeff1"],
)
def test_what_is_not_json_is_refused(text: str) -> None:
    with pytest.raises(ValueRefused, match="is not JSON") as caught:
        canonical_json(text)
    assert caught.value.fields["value"] == repr(text)


@pytest.mark.parametrize("text", ["1e1000", "1e-1000", "1e" + "9" * 20, "9" * 1001, "9" * 100_000, "1e" + "9" * 9999])
def test_absurd_numbers_are_refused(text: str) -> None:
    with pytest.raises(ValueRefused, match="longer than 1000 digits"):
        canonical_json(f"[{text}]")


@pytest.mark.parametrize("depth", [MAX_JSON_DEPTH + 1, 100_000])
def test_deep_nesting_is_refused(depth: int) -> None:
    with pytest.raises(ValueRefused, match="nested deeper than 256"):
        canonical_json("[" * depth + "]" * depth)
    with pytest.raises(ValueRefused, match="nested deeper than 256"):
        canonical_json('{"a":' * depth + "1" + "}" * depth)


def test_many_brackets_side_by_side_are_not_deep() -> None:
    text = "[" + ", ".join(["[]"] * 1000) + "]"
    assert canonical_json(text) == text
    deepest = "[" * MAX_JSON_DEPTH + "]" * MAX_JSON_DEPTH
    assert canonical_json(deepest) == deepest


def test_python_values_get_the_same_text() -> None:
    items = [1e22, 2**70, Decimal("1.10"), Decimal("1E+3"), None, True, ("x", -0.0)]
    value = {"b": 1.50, "a": items, "é": {"k": 10**700}}
    assert json_of(value) == canonical_json(
        '{"b": 1.5, "a": [10000000000000000000000, 1180591620717411303424, 1.1, 1000, null, true, ["x", 0]],'
        f'"é": {{"k": {10**700}}}}}'
    )


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        float("inf"),
        Decimal("NaN"),
        {1: 2},
        {"a": {1, 2}},
        b"x",
        ["\0"],
        {"\ud800": 1},
        "\ud800",
        10**1001,
        10**9999,
    ],
    ids=lambda value: type(value).__name__,
)
def test_python_values_that_json_has_not_are_refused(value: object) -> None:
    with pytest.raises(ValueRefused):
        json_of(value)


def test_python_values_that_are_too_deep_or_circular_are_refused() -> None:
    circle: list[object] = []
    circle.append(circle)
    with pytest.raises(ValueRefused, match="nested deeper"):
        json_of(circle)


@given(_text_of(JSON_NUMBERS))
def test_the_canonical_text_is_its_own(text: str) -> None:
    once = canonical_json(text)
    assert canonical_json(once) == once
    assert json.loads(once, parse_float=Decimal, parse_int=Decimal) == json.loads(
        text, parse_float=Decimal, parse_int=Decimal
    )
    assert json_of(json.loads(text, parse_float=Decimal)) == once


def test_it_is_what_postgres_prints(database_url: str) -> None:
    with psycopg.connect(database_url) as connection:

        @given(_text_of(PLAIN_NUMBERS))
        def agrees(text: str) -> None:
            row = connection.execute("select (%s::text)::jsonb::text", [text]).fetchone()
            assert row == (canonical_json(text),)

        agrees()


def test_postgres_keeps_the_value_of_every_number(database_url: str) -> None:
    with psycopg.connect(database_url) as connection:

        @given(_text_of(JSON_NUMBERS))
        def agrees(text: str) -> None:
            # jsonb compares numbers by value, and it keeps the canonical text as it is.
            query = "select (%s::text)::jsonb = (%s::text)::jsonb, (%s::text)::jsonb::text"
            canonical = canonical_json(text)
            assert connection.execute(query, [text, canonical, canonical]).fetchone() == (True, canonical)

        agrees()
