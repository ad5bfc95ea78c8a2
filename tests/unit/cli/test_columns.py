"""Column declarations of the command line."""

from __future__ import annotations

import pytest

from lakeward.cli.columns import parse_columns, parse_names
from lakeward.errors import SchemaError


def test_types_keep_their_commas_and_colons() -> None:
    text = "id:long, price:decimal(18,4),s:struct<a: int, b: list<string>>"
    assert parse_columns(text, ["odd:name,=x=string"]) == {
        "id": "long",
        "price": "decimal(18,4)",
        "s": "struct<a: int, b: list<string>>",
        "odd:name,=x": "string",
    }
    assert parse_columns(None) == {}


@pytest.mark.parametrize(("listed", "single"), [("id", []), ("id:", []), (":long", []), ("", []), (None, ["x"])])
def test_a_part_without_type_is_refused(listed: str | None, single: list[str]) -> None:
    with pytest.raises(SchemaError, match="declares no column"):
        parse_columns(listed, single)


def test_a_column_stands_once() -> None:
    with pytest.raises(SchemaError, match="'id' is declared twice"):
        parse_columns("id:long", ["id=int"])


def test_names() -> None:
    assert parse_names(["a,b", " c "]) == ["a", "b", "c"]
