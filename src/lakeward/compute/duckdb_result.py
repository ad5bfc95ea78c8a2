"""The columns of a query's result: their types, and the casts with which they leave the engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lakeward.compute.duckdb_types import Unsupported, export_type, to_logical
from lakeward.errors import SchemaError
from lakeward.types.logical import LogicalType
from lakeward.types.quoting import duckdb_name
from lakeward.types.table import duckdb_type


@dataclass(frozen=True)
class ResultColumn:
    """A column of a result: its name, its logical type, and the type to cast it to on the way out, if any."""

    name: str
    type: LogicalType
    cast: str | None


def result_column(name: str, type_: Any) -> ResultColumn:
    """Return a column of a result by its DuckDB type.

    Raises:
        SchemaError: no dataset has a column of that type.
    """
    try:
        logical = to_logical(type_)
    except Unsupported as unsupported:
        raise SchemaError(
            f"result column {name!r} is of type {unsupported.type_name}, which no dataset holds: {unsupported.reason}",
            next_step=f"cast it: {unsupported.cast.replace('{}', duckdb_name(name))}",
            column=name,
            type=unsupported.type_name,
            step=None,
        ) from None
    leaves_as = duckdb_type(export_type(logical))
    return ResultColumn(name, logical, None if str(type_).upper() == leaves_as.upper() else leaves_as)


def exported(sql: str, columns: Sequence[ResultColumn]) -> str:
    """Return the query with the casts of its columns; DuckDB keeps the order of an ordered subquery."""
    if not any(column.cast for column in columns):
        return sql
    selected = ", ".join(
        f"CAST({duckdb_name(column.name)} AS {column.cast}) AS {duckdb_name(column.name)}"
        if column.cast
        else duckdb_name(column.name)
        for column in columns
    )
    return f"SELECT {selected} FROM (\n{sql}\n) AS result"
