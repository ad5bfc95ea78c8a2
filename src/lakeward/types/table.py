"""The type table: for each logical type, one rule that says how its values are held, moved and compared.

A value lives in four places, and `RULES` shows the whole life of each type side by side:

    Arrow        in memory, and in Parquet files                       `Rule.arrow`
    DuckDB       in queries                                            `Rule.duckdb`
    JSONB        in the Postgres arm, one document per row             `Rule.json` writes it, `Rule.read` reads it as
                                                                       text, `Rule.parse` makes Arrow of that text
    digest       in the checksum, the same text from both engines      `Rule.digest_duckdb`, `Rule.digest_postgres`

Columns leave Postgres as text and become typed in Arrow. Refused: casts in Postgres. They are slower (a timestamp
costs ten times as much there), ADBC delivers an infinite instant as garbage, and a bad value ends its stream without
being named.

The digest's text of a value is: the tag of its type, the value, `;`. Text, which may hold any character, has its
length in bytes before it; all other forms can't hold a `;`. A null is an empty value, which no value's form is. So
no two different rows of the same types have the same text.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import pyarrow as pa
from psycopg import sql

from lakeward.types import arrow_text, forms
from lakeward.types.forms import Code, Stored
from lakeward.types.logical import DecimalType, ListType, LogicalType, StructType
from lakeward.types.nearest import logical_type as logical_type
from lakeward.types.quoting import duckdb_name, duckdb_text, postgres_text
from lakeward.types.schema import Schema


@dataclass(frozen=True)
class Rule:
    """The life of one type's values. Each function is called with the type, for its parameters and elements.

    Attributes:
        arrow: the Arrow type.
        duckdb: the DuckDB type.
        json: DuckDB expression of a value → DuckDB expression of its JSON text. Null stays null.
        parse: what the Postgres arm delivers, an Arrow array of text → an array of `arrow`. Raises
            `pa.ArrowInvalid` or `ValueError` for a text that is no such value. Lists and structs go level by level
            through `jsonb.py`, which calls the rules of their leaves; they have none.
        tag: the letter of the type in the digest. Types that may be promoted to each other share it.
        digest_duckdb: DuckDB expression of a value → pieces of its digest text. A null piece counts as empty.
        digest_postgres: place of a stored value → SQL of the same text, never null.
        fill: what follows every value's text in the digest.
        read: place of a stored value → SQL of the text that `parse` takes. Null stays null.
    """

    arrow: Callable[[LogicalType], pa.DataType]
    duckdb: Callable[[LogicalType], str]
    json: Callable[[LogicalType, str], str]
    parse: Callable[[pa.Array, pa.DataType], pa.Array] | None
    tag: str
    digest_duckdb: Callable[[LogicalType, str], list[str | Code]]
    digest_postgres: Callable[[LogicalType, Stored], sql.Composable]
    fill: Callable[[LogicalType], str] = lambda _type: ""
    read: Callable[[Stored], sql.Composable] = lambda stored: stored.text


def rule_of(type_: LogicalType) -> Rule:
    """Return the rule of a type."""
    return RULES[type_.kind]


def arrow_type(type_: LogicalType) -> pa.DataType:
    """Return the Arrow type in which values of `type_` travel."""
    return rule_of(type_).arrow(type_)


def duckdb_type(type_: LogicalType) -> str:
    """Return the DuckDB type of `type_` as SQL."""
    return rule_of(type_).duckdb(type_)


def arrow_schema(schema: Schema) -> pa.Schema:
    """Return the Arrow schema of a dataset's business columns; all are nullable."""
    return pa.schema([pa.field(column.name, arrow_type(column.type)) for column in schema.columns])


def _simple(arrow: pa.DataType) -> Callable[[LogicalType], pa.DataType]:
    return lambda _type: arrow


def _named(name: str) -> Callable[[LogicalType], str]:
    return lambda _type: name


def _decimal_arrow(type_: LogicalType) -> pa.DataType:
    type_ = cast(DecimalType, type_)
    return pa.decimal128(type_.precision, type_.scale)


# --- list and struct: their elements' forms, recursively. The variable `e` may hide an outer one: what stands for an
# element refers to that element only.


def nested_json(type_: LogicalType, value: str) -> str:
    """Return the JSON form of a value inside a list or struct.

    A json value is a string with its text there, because in a list its `null` has to differ from a null element.
    """
    return forms.json_text(type_, value) if type_.kind == "json" else rule_of(type_).json(type_, value)


def object_json(fields: dict[str, str]) -> str:
    """Return the DuckDB expression of a JSON object, given the JSON forms of its values; nulls are left out.

    Left out and not written as `null`: at equal speed the documents are smaller, and null differs from a json `null`.
    """
    members = [
        f"{duckdb_text(json.dumps(name, ensure_ascii=False) + ':')} || ({form})" for name, form in fields.items()
    ]
    return f"'{{' || concat_ws(',', {', '.join(members)}) || '}}'"  # concat_ws skips nulls


def joined(pieces: list[str | Code]) -> str:
    """Return the DuckDB expression of the text that the pieces make in a row; null pieces count as empty."""
    merged: list[str | Code] = []
    for piece in pieces:
        if merged and isinstance(piece, str) and isinstance(merged[-1], str):
            merged[-1] += piece
        else:
            merged.append(piece)
    return f"concat({', '.join(p.sql if isinstance(p, Code) else duckdb_text(p) for p in merged)})"


def digest_pieces(type_: LogicalType, value: str) -> list[str | Code]:
    """Return the pieces of a value's whole digest text for DuckDB, given the expression of the value."""
    rule = rule_of(type_)
    return [rule.tag, *rule.digest_duckdb(type_, value), rule.fill(type_) + ";"]


def digest_stored(fields: list[tuple[LogicalType, Stored]]) -> sql.Composable:
    """Return PostgreSQL's expression of the digest texts of values in a row."""
    parts: list[sql.Composable] = []
    literal = ""
    for type_, stored in fields:
        rule = rule_of(type_)
        parts += [postgres_text(literal + rule.tag), rule.digest_postgres(type_, stored)]
        literal = rule.fill(type_) + ";"
    return _in_pairs([*parts, postgres_text(literal)])


def _in_pairs(parts: list[sql.Composable]) -> sql.Composable:
    """Return PostgreSQL's expression of the text that the parts make in a row.

    Each `||` copies both of its texts: of two halves that have about the same length, each part is copied as often as
    the number of parts can be halved, and not once for each part behind it. Nor does the expression get as deep.
    """
    if len(parts) == 1:
        return parts[0]
    middle = (len(parts) + 1) // 2
    return sql.SQL("({}||{})").format(_in_pairs(parts[:middle]), _in_pairs(parts[middle:]))


def _struct_field(value: str, name: str) -> str:
    return f"struct_extract({value}, {duckdb_text(name)})"


def _list_json(type_: LogicalType, value: str) -> str:
    form = nested_json(cast(ListType, type_).element, "e")
    return f"'[' || array_to_string(list_transform({value}, lambda e: coalesce({form}, 'null')), ',') || ']'"


def _struct_json(type_: LogicalType, value: str) -> str:
    fields = cast(StructType, type_).fields
    members = {field.name: nested_json(field.type, _struct_field(value, field.name)) for field in fields}
    return f"CASE WHEN {value} IS NOT NULL THEN {object_json(members)} END"


def _list_digest(type_: LogicalType, value: str) -> list[str | Code]:
    form = joined(digest_pieces(cast(ListType, type_).element, "e"))
    return [Code(f"len({value}) || ':' || array_to_string(list_transform({value}, lambda e: {form}), '')")]


def _list_digest_stored(type_: LogicalType, stored: Stored) -> sql.Composable:
    element = cast(ListType, type_).element
    e = sql.SQL("e")
    if isinstance(element, ListType | StructType):
        elements, item = sql.SQL("jsonb_array_elements"), Stored(sql.SQL("(e#>>'{}')"), e, nested=True)
    else:
        elements, item = sql.SQL("jsonb_array_elements_text"), Stored(e, e, nested=True)
    # An ordered aggregate would sort; the elements of one function come in order.
    return sql.SQL(
        "CASE WHEN jsonb_typeof({0})='array' "
        "THEN (SELECT count(*)||':'||coalesce(string_agg({1},''),'') FROM {2}({0}) AS elements(e)) ELSE '' END"
    ).format(stored.jsonb, digest_stored([(element, item)]), elements)


def _struct_digest(type_: LogicalType, value: str) -> list[str | Code]:
    pieces: list[str | Code] = ["{"]
    for field in cast(StructType, type_).fields:
        pieces += digest_pieces(field.type, _struct_field(value, field.name))
    return [Code(f"CASE WHEN {value} IS NOT NULL THEN {joined([*pieces, '}'])} END")]


def _struct_digest_stored(type_: LogicalType, stored: Stored) -> sql.Composable:
    fields = [(field.type, stored.field(field.name)) for field in cast(StructType, type_).fields]
    return sql.SQL("CASE WHEN jsonb_typeof({})='object' THEN '{{'||{}||'}}' ELSE '' END").format(
        stored.jsonb, digest_stored(fields)
    )


def _list_arrow(type_: LogicalType) -> pa.DataType:
    # "element" is Iceberg's and Parquet's name for it.
    return pa.list_(pa.field("element", arrow_type(cast(ListType, type_).element)))


def _list_duckdb(type_: LogicalType) -> str:
    return duckdb_type(cast(ListType, type_).element) + "[]"


def _struct_arrow(type_: LogicalType) -> pa.DataType:
    return pa.struct([pa.field(field.name, arrow_type(field.type)) for field in cast(StructType, type_).fields])


def _struct_duckdb(type_: LogicalType) -> str:
    fields = cast(StructType, type_).fields
    return f"STRUCT({', '.join(f'{duckdb_name(field.name)} {duckdb_type(field.type)}' for field in fields)})"


def _text_rule(
    arrow: pa.DataType,
    duckdb: str,
    text: Callable[[LogicalType, str], str],
    parse: Callable[[pa.Array, pa.DataType], pa.Array],
    tag: str,
    *,
    bare: bool = False,
) -> Rule:
    """Return the rule of a type whose values have one ISO-like text, the same in JSON and in the digest.

    `bare` values are JSON's own numbers and booleans; the others are JSON strings.
    """
    return Rule(
        _simple(arrow),
        _named(duckdb),
        text if bare else forms.quoted(text),
        parse,
        tag,
        forms.digest(text),
        forms.digest_stored,
    )


RULES: dict[str, Rule] = {
    "boolean": _text_rule(pa.bool_(), "BOOLEAN", forms.plain, arrow_text.cast, "b", bare=True),
    "int": _text_rule(pa.int32(), "INTEGER", forms.plain, arrow_text.cast, "i", bare=True),
    "long": _text_rule(pa.int64(), "BIGINT", forms.plain, arrow_text.cast, "i", bare=True),
    "float": Rule(
        arrow=_simple(pa.float32()),
        duckdb=_named("FLOAT"),
        json=forms.float_json,
        parse=arrow_text.cast,
        tag="f",
        digest_duckdb=forms.float_digest,
        digest_postgres=forms.float_digest_stored,
    ),
    "double": Rule(
        arrow=_simple(pa.float64()),
        duckdb=_named("DOUBLE"),
        json=forms.float_json,
        parse=arrow_text.cast,
        tag="f",
        digest_duckdb=forms.float_digest,
        digest_postgres=forms.float_digest_stored,
    ),
    "decimal": Rule(
        arrow=_decimal_arrow,
        duckdb=forms.decimal_name,
        json=forms.quoted(forms.decimal_text),
        parse=arrow_text.cast,
        tag="d",
        digest_duckdb=forms.digest(forms.decimal_text),
        digest_postgres=forms.digest_stored,
        fill=forms.decimal_fill,
    ),
    "string": Rule(
        arrow=_simple(pa.string()),
        duckdb=_named("VARCHAR"),
        json=forms.json_text,
        parse=arrow_text.same,
        tag="s",
        digest_duckdb=forms.digest_text,
        digest_postgres=forms.digest_stored_text,
    ),
    "binary": Rule(
        arrow=_simple(pa.binary()),
        duckdb=_named("BLOB"),
        json=forms.quoted(forms.binary_text),
        parse=arrow_text.binary,
        tag="x",
        digest_duckdb=forms.binary_digest,
        digest_postgres=forms.binary_digest_stored,
    ),
    "uuid": _text_rule(pa.uuid(), "UUID", forms.uuid_text, arrow_text.uuid, "u"),
    "date": _text_rule(pa.date32(), "DATE", forms.plain, arrow_text.cast, "D"),
    "time": _text_rule(pa.time64("us"), "TIME", forms.plain, arrow_text.time, "T"),
    "timestamp": _text_rule(pa.timestamp("us"), "TIMESTAMP", forms.timestamp_text, arrow_text.cast, "t"),
    "timestamptz": _text_rule(pa.timestamp("us", "UTC"), "TIMESTAMPTZ", forms.timestamptz_text, arrow_text.cast, "z"),
    "list": Rule(
        arrow=_list_arrow,
        duckdb=_list_duckdb,
        json=_list_json,
        parse=None,
        tag="l",
        digest_duckdb=_list_digest,
        digest_postgres=_list_digest_stored,
    ),
    "struct": Rule(
        arrow=_struct_arrow,
        duckdb=_struct_duckdb,
        json=_struct_json,
        parse=None,
        tag="r",
        digest_duckdb=_struct_digest,
        digest_postgres=_struct_digest_stored,
    ),
    "json": Rule(
        arrow=_simple(pa.string()),
        duckdb=_named("VARCHAR"),
        json=lambda _type, value: value,
        parse=arrow_text.same,
        tag="j",
        digest_duckdb=forms.digest_text,
        digest_postgres=forms.digest_stored_json,
        read=forms.json_value_text,
    ),
}
"""The table. A new type is one entry here and one name in `logical.py`."""
