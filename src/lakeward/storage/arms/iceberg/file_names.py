"""The names of columns and struct fields inside data files, which are not always those of the table.

Writers of Iceberg put names into Parquet that Avro could hold (`two words` becomes `two_x20words`), and readers go by
field ids. DuckDB goes by ids for whole columns only: a struct's fields it finds by name, and one that it doesn't find
reads as null without a word. So nested columns are read under their files' names and given the table's names after.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyiceberg import types as iceberg
from pyiceberg.schema import Schema, make_compatible_name

from lakeward.storage.filters import quote_identifier
from lakeward.types.logical import ListType, LogicalType, StructType, list_of, struct_of


def file_schema(schema: Schema) -> Schema:
    """Return a table's schema under the names that stand in its data files; the field ids stay.

    Where two siblings would get one name, all of them are named by their ids.
    """
    return Schema(*_fields(schema.fields))


def _fields(fields: Sequence[iceberg.NestedField]) -> list[iceberg.NestedField]:
    names = [make_compatible_name(field.name) for field in fields]
    if len({name.casefold() for name in names}) < len(names):
        names = [f"field_{field.field_id}" for field in fields]
    return [
        iceberg.NestedField(field.field_id, name, _type(field.field_type), required=field.required)
        for field, name in zip(fields, names, strict=True)
    ]


def _type(type_: iceberg.IcebergType) -> iceberg.IcebergType:
    if isinstance(type_, iceberg.StructType):
        return iceberg.StructType(*_fields(type_.fields))
    if isinstance(type_, iceberg.ListType):
        return iceberg.ListType(type_.element_id, _type(type_.element_type), element_required=type_.element_required)
    return type_


def type_in_files(type_: LogicalType, physical: iceberg.IcebergType) -> LogicalType:
    """Return a column's type with the struct fields' names of the data files.

    Args:
        type_: the column's type.
        physical: the same type in `file_schema`.
    """
    if isinstance(type_, StructType) and isinstance(physical, iceberg.StructType):
        pairs = zip(type_.fields, physical.fields, strict=True)
        return struct_of({there.name: type_in_files(field.type, there.field_type) for field, there in pairs})
    if isinstance(type_, ListType) and isinstance(physical, iceberg.ListType):
        return list_of(type_in_files(type_.element, physical.element_type))
    return type_


def under_table_names(expression: str, type_: LogicalType, in_files: LogicalType, depth: int = 0) -> str:
    """Return DuckDB SQL that gives a value read from a file the names of the table.

    Args:
        expression: SQL of the value.
        type_: its type under the table's names.
        in_files: its type under the file's names.
        depth: how many lists it is in.
    """
    if type_ == in_files:
        return expression
    if isinstance(type_, ListType) and isinstance(in_files, ListType):
        item = f"item_{depth}"
        return (
            f"list_transform({expression}, lambda {item}: "
            f"{under_table_names(item, type_.element, in_files.element, depth + 1)})"
        )
    assert isinstance(type_, StructType) and isinstance(in_files, StructType)
    # By position, which no name can get wrong.
    parts = ", ".join(
        f"{quote_identifier(field.name)} := "
        + under_table_names(f"struct_extract_at({expression}, {position})", field.type, there.type, depth)
        for position, (field, there) in enumerate(zip(type_.fields, in_files.fields, strict=True), start=1)
    )
    return f"CASE WHEN {expression} IS NULL THEN NULL ELSE struct_pack({parts}) END"
