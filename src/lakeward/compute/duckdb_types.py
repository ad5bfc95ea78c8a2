"""What a column of a DuckDB result becomes: a logical type, or a refusal that names a cast that works.

The other direction, a logical type as DuckDB holds it, is in `lakeward.types.table`.
"""

from __future__ import annotations

from typing import Any

from lakeward.types.logical import ListType, LogicalType, StructType, decimal, list_of, simple, struct_of
from lakeward.types.quoting import duckdb_name
from lakeward.types.table import duckdb_type

_PLAIN = {
    "boolean": "boolean",
    "tinyint": "int",
    "smallint": "int",
    "integer": "int",
    "utinyint": "int",
    "usmallint": "int",
    "uinteger": "long",
    "bigint": "long",
    "float": "float",
    "double": "double",
    "varchar": "string",
    "blob": "binary",
    "uuid": "uuid",
    "date": "date",
    "time": "time",
    "timestamp": "timestamp",
    "timestamp_s": "timestamp",
    "timestamp_ms": "timestamp",
    "timestamp with time zone": "timestamptz",
    "enum": "string",
}
_WIDE = {"ubigint": (20, 0), "hugeint": (38, 0), "uhugeint": (38, 0)}
"""Integers past 64 bits: `sum` of a long is a hugeint. A value past 38 digits fails the query, it is never rounded."""

_CASTS = {
    "null": ("it is always null", "CAST({} AS VARCHAR), or the type that is meant"),
    "tuple": ("its fields have no names", "struct_pack(first := …, second := …)"),
    "interval": ("an interval has no fixed length", "epoch({}) for seconds, or CAST({} AS VARCHAR)"),
    "map": ("maps have no place in a dataset", "map_entries({}), a list of key and value"),
    "union": ("unions have no place in a dataset", "CAST({} AS VARCHAR), or union_extract({}, 'tag')"),
    "bit": ("bit strings have no place in a dataset", "CAST({} AS VARCHAR)"),
    "bignum": ("it has no limit", "CAST(CAST({} AS VARCHAR) AS DECIMAL(38,0))"),
    "variant": ("variants have no place in a dataset", "CAST({} AS JSON)"),
    "time with time zone": ("a time of day has no zone here", "CAST({} AS TIME)"),
    "timestamp_ns": ("instants have microseconds here", "CAST({} AS TIMESTAMP)"),
    "time_ns": ("times have microseconds here", "CAST({} AS TIME)"),
}


class Unsupported(Exception):
    """A result type that no dataset has. `reason` says why, `cast` is a template for the way out."""

    def __init__(self, type_name: str, reason: str, cast: str) -> None:
        super().__init__(type_name)
        self.type_name = type_name
        self.reason = reason
        self.cast = cast


def to_logical(type_: Any) -> LogicalType:
    """Return the logical type that holds every value of a DuckDB type.

    Args:
        type_: a type of a DuckDB relation (`relation.types`).

    Raises:
        Unsupported: there is none.
    """
    kind = str(type_.id).lower()
    # JSON is a VARCHAR with another name: the id alone doesn't tell.
    if str(type_).upper() == "JSON":
        return simple("json")
    if kind in _PLAIN:
        return simple(_PLAIN[kind])
    if kind in _WIDE:
        return decimal(*_WIDE[kind])
    if kind == "decimal":
        facts = dict(type_.children)
        return decimal(int(facts["precision"]), int(facts["scale"]))
    if kind in ("list", "array"):
        return list_of(to_logical(dict(type_.children)["child"]))
    if kind == "struct":
        fields = {str(name): to_logical(child) for name, child in type_.children}
        return struct_of(fields)
    reason, cast = _CASTS.get(kind, ("no dataset holds it", "CAST({} AS VARCHAR)"))
    raise Unsupported(str(type_), reason, cast)


def seen_type(type_: LogicalType) -> str:
    """Return the DuckDB type in which user SQL sees a column: that of the type table, but JSON for json, at any depth.

    Seen as text, a json column would come out of `SELECT *` as a string column.
    """
    if type_.kind == "json":
        return "JSON"
    if isinstance(type_, ListType):
        return f"{seen_type(type_.element)}[]"
    if isinstance(type_, StructType):
        return f"STRUCT({', '.join(f'{duckdb_name(field.name)} {seen_type(field.type)}' for field in type_.fields)})"
    return duckdb_type(type_)


def export_type(type_: LogicalType) -> LogicalType:
    """Return the type in which a column leaves the engine: uuid and json leave as text, at any depth.

    Their canonical text is what `types.conform` takes, and it needs no Arrow extension type.
    """
    if type_.kind in ("uuid", "json"):
        return simple("string")
    if isinstance(type_, ListType):
        return list_of(export_type(type_.element))
    if isinstance(type_, StructType):
        return struct_of({field.name: export_type(field.type) for field in type_.fields})
    return type_
