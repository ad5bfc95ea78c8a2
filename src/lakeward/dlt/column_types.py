"""dlt's types of columns → logical types: each holds every value that dlt writes, or the value is refused by name."""

from __future__ import annotations

from dlt.common.libs.pyarrow import deserialize_type
from dlt.common.schema.typing import TColumnSchema

from lakeward.errors import SchemaError
from lakeward.types import nearest
from lakeward.types.logical import LogicalType

DECIMAL = (38, 9)
"""What dlt means by a decimal for which nothing else is declared."""
WEI = (76, 0)
"""Whole numbers past 64 bits, as dlt writes them: as wide as Arrow can, so that it is a dataset that refuses."""

MAX_DIGITS = 38

_PLAIN = {
    "text": "string",
    "double": "double",
    "bool": "boolean",
    "bigint": "long",
    "binary": "binary",
    "json": "json",
    "date": "date",
    "time": "time",
    "wei": f"decimal({MAX_DIGITS},0)",
}


def logical_type(column: TColumnSchema, table: str) -> str:
    """Return the text of a column's logical type.

    Args:
        column: with its data type.
        table: whose, for the error.

    Raises:
        SchemaError: there is none.
    """
    kind = str(column["data_type"])
    if nested := column.get("x-nested-type"):
        return str(_nested(str(nested), column, table))
    if kind in _PLAIN:
        return _PLAIN[kind]
    if kind == "timestamp":
        return "timestamp" if column.get("timezone") is False else "timestamptz"
    if kind == "decimal":
        precision = column.get("precision")
        digits, scale = DECIMAL if precision is None else (precision, column.get("scale") or 0)
        if digits <= MAX_DIGITS:
            return f"decimal({digits},{scale})"
        kind = f"decimal({digits},{scale})"
    raise _refused(kind, column, table)


def _nested(serialized: str, column: TColumnSchema, table: str) -> LogicalType:
    type_ = deserialize_type(serialized)
    try:
        return nearest.logical_type(type_)
    except SchemaError as error:
        raise _refused(str(type_), column, table) from error


def _refused(kind: str, column: TColumnSchema, table: str) -> SchemaError:
    return SchemaError(
        f"column {column['name']!r} of table {table} is {kind}, which has no type here",
        safe="nothing of the load package was written",
        next_step=f"load it as text: columns={{{column['name']!r}: {{'data_type': 'text'}}}} on the resource",
        table=table,
        column=column["name"],
    )
