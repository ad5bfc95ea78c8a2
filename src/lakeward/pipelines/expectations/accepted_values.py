"""The expectation `accepted_values`: a column that has only some values."""

from __future__ import annotations

import re
from datetime import date, datetime, time
from decimal import Decimal, InvalidOperation
from typing import Any

from lakeward.errors import ValueRefused
from lakeward.pipelines.expectation import Expectation, Refuse, RowExpectation, Scope
from lakeward.pipelines.origin import Origin, Path
from lakeward.pipelines.spec_checks import nearest
from lakeward.types.conform import to_reader
from lakeward.types.quoting import duckdb_name, duckdb_text
from lakeward.types.schema import Schema
from lakeward.types.table import duckdb_type

_KINDS = ("boolean", "int", "long", "float", "double", "decimal", "string", "uuid", "date", "time", "timestamp")


class AcceptedValues(RowExpectation):
    """`column` has one of `values` in every row. A null passes, unless `nulls: false` refuses it."""

    name = "accepted_values"

    column: str
    values: list[Any]
    nulls: bool = True

    def checked(self, path: Path, origin: Origin) -> Expectation:
        """See `Expectation.checked`."""
        if not self.values:
            raise origin.error("'values' is empty", (*path, "values"), next_step="write `values: [a, b]`")
        for position, value in enumerate(self.values):
            if value is None or isinstance(value, list | dict):
                raise origin.error(
                    f"{'null' if value is None else value!r} is no value of a list of accepted ones",
                    (*path, "values", position),
                    next_step="take it out: `nulls` says whether a null passes" if value is None else "write one value",
                )
        return self

    def check_columns(self, scope: Scope, path: Path, refuse: Refuse) -> None:
        """See `Expectation.check_columns`. Every value must be one that the column could have."""
        if self.column not in scope.schema.names:
            there = ", ".join(scope.schema.names)
            hint = nearest(self.column, scope.schema.names) or "write one of these"
            raise refuse(f"unknown column {self.column!r}; there are {there}", (*path, "column"), hint)
        type_ = scope.schema.column(self.column).type
        if type_.kind not in _KINDS:
            hint = 'compare it in a `row`, as in {check: "…"}'
            raise refuse(f"column {self.column!r} is {type_}, of which no values are listed", (*path, "column"), hint)
        only = Schema.declare({"v": type_})
        for position, value in enumerate(self.values):
            try:
                to_reader([{"v": _python(value, type_.kind)}], only, dataset="").read_all()
            except (ValueRefused, ValueError, InvalidOperation):
                raise refuse(
                    f"{value!r} is no {type_}, which the column {self.column!r} is",
                    (*path, "values", position),
                    "take it out, or write it as that type",
                ) from None

    def describe(self) -> str:
        """See `Expectation.describe`."""
        return f"{self.column} is one of {', '.join(str(value) for value in self.values)}"

    def holds(self, scope: Scope) -> str:
        """See `RowExpectation.holds`."""
        type_ = duckdb_type(scope.schema.column(self.column).type)
        values = ", ".join(f"CAST({duckdb_text(_text(value))} AS {type_})" for value in self.values)
        return f"coalesce({duckdb_name(self.column)} IN ({values}), {'true' if self.nulls else 'false'})"


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _python(value: Any, kind: str) -> Any:
    """Return a value of a spec as Python has those of a type: a spec has texts for dates and the like."""
    if kind == "decimal" and isinstance(value, float):
        return Decimal(str(value))
    if isinstance(value, str):
        if kind == "date" and re.fullmatch(r"\d{4}-\d\d-\d\d", value):
            return date.fromisoformat(value)
        if kind == "time":
            return time.fromisoformat(value)
        if kind == "timestamp":
            return datetime.fromisoformat(value)
    return value
