"""Declarations: what is taken, what is refused and how it is named."""

from __future__ import annotations

import pytest
from hypothesis import given

from lakeward.errors import SchemaError
from lakeward.types.logical import parse_type
from lakeward.types.schema import IDENTITY_COLUMNS, MAX_COLUMN_NAME_BYTES, MAX_COLUMNS, Schema, name_key
from support.rows import ODD_NAMES, schemas


def refusal(columns: dict[str, str], key: list[str] | None = None) -> SchemaError:
    with pytest.raises(SchemaError) as caught:
        Schema.declare(columns, key or [], dataset="main.sales.orders")
    assert "main.sales.orders" in caught.value.message
    return caught.value


@given(schemas())
def test_every_schema_reads_back_from_its_json(schema: Schema) -> None:
    assert Schema.from_json(schema.to_json(), schema.primary_key) == schema


def test_columns_are_numbered_from_one() -> None:
    schema = Schema.declare({"id": "long", "note": parse_type("string")}, ["id"])
    assert [(column.field_id, column.name) for column in schema.columns] == [(1, "id"), (2, "note")]
    assert schema.primary_key == ("id",)


def test_select_keeps_the_ids_and_the_asked_order() -> None:
    schema = Schema.declare({"a": "long", "b": "string", "c": "date"}, ["a"]).select(["c", "a"])
    assert [column.field_id for column in schema.columns] == [3, 1]
    assert schema.primary_key == ()
    with pytest.raises(SchemaError, match="unknown column 'x'; there are c, a"):
        schema.select(["x"])


def test_n01_odd_names_are_names() -> None:
    declared = dict.fromkeys(ODD_NAMES, "long")
    assert Schema.declare(declared, ['q"x']).names == ODD_NAMES


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "a\x00b", "\x7f", "\ud83d", "x" * (MAX_COLUMN_NAME_BYTES + 1)])
def test_n01_names_that_some_step_would_refuse_are_refused_at_declaration(name: str) -> None:
    refusal({name: "long"})
    refusal({"s": f'struct<"{name}": long>'})


def test_the_longest_name_counts_bytes() -> None:
    Schema.declare({"é" * (MAX_COLUMN_NAME_BYTES // 2): "long"})
    refusal({"é" * (MAX_COLUMN_NAME_BYTES // 2 + 1): "long"})


@pytest.mark.parametrize("name", IDENTITY_COLUMNS)
def test_only_the_identity_columns_are_reserved(name: str) -> None:
    assert refusal({name: "long"}).fields["column"] == name
    # A twin that differs in case only would be the same column to DuckDB.
    assert refusal({name.upper(): "long"}).fields["column"] == name.upper()
    Schema.declare({name + "_": "long", name.removeprefix("_"): "long", "__op": "string"})


def test_two_fields_of_one_dotted_path_are_refused() -> None:
    refusal({"a.b": "long", "a": "struct<b: long>"})
    refusal({"a": "list<long>", "a.element": "long"})
    refusal({"s": 'struct<"b.c": long, b: struct<c: long>>'})
    Schema.declare({"a.b": "long", "a": "struct<c: long>", "a.c.d": "long"})


@pytest.mark.parametrize("twin", ["ID", "Id"])
def test_names_that_differ_in_case_are_twins(twin: str) -> None:
    assert refusal({"id": "long", twin: "long"}).fields["columns"] == ["id", twin]
    refusal({"s": f"struct<id: long, {twin}: long>"})
    refusal({"s": f"list<struct<id: long, {twin}: long>>"})


def test_names_that_differ_in_unicode_form_are_twins() -> None:
    composed, decomposed = "caf\u00e9", "cafe\u0301"
    assert name_key(composed) == name_key(decomposed.upper())
    refusal({composed: "long", decomposed: "long"})


def test_a_schema_has_columns_but_not_too_many() -> None:
    refusal({})
    refusal({f"c{number}": "long" for number in range(MAX_COLUMNS + 1)})


def test_an_unknown_type_names_the_column() -> None:
    error = refusal({"id": "long", "amount": "money"})
    assert error.fields["column"] == "amount"
    assert "'money'" in error.message


@pytest.mark.parametrize("type_", ["float", "double", "list<long>", "struct<a: long>", "json"])
def test_a_key_needs_exact_equality(type_: str) -> None:
    assert refusal({"k": type_}, ["k"]).fields["column"] == "k"


def test_a_key_names_each_of_its_columns_once() -> None:
    assert refusal({"k": "long"}, ["x"]).fields["column"] == "x"
    assert refusal({"k": "long"}, ["k", "k"]).fields["column"] == "k"
