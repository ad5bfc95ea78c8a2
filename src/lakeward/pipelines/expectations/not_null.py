"""The expectation `not_null`: columns that have a value in every row."""

from __future__ import annotations

from lakeward.pipelines.expectation import Expectation, Refuse, RowExpectation, Scope
from lakeward.pipelines.origin import Origin, Path
from lakeward.pipelines.spec_checks import nearest
from lakeward.types.quoting import duckdb_name


class NotNull(RowExpectation):
    """Every one of `columns` has a value. A NaN and an empty text are values."""

    name = "not_null"
    bare = "columns"

    columns: list[str]

    def checked(self, path: Path, origin: Origin) -> Expectation:
        """See `Expectation.checked`."""
        if not self.columns:
            raise origin.error("'columns' is empty", path, next_step="write `not_null: [column]`")
        return self

    def check_columns(self, scope: Scope, path: Path, refuse: Refuse) -> None:
        """See `Expectation.check_columns`."""
        for column in self.columns:
            if column not in scope.schema.names:
                hint = nearest(column, scope.schema.names) or "write one of these"
                raise refuse(f"unknown column {column!r}; there are {', '.join(scope.schema.names)}", path, hint)

    def describe(self) -> str:
        """See `Expectation.describe`."""
        return f"{', '.join(self.columns)} {'is' if len(self.columns) == 1 else 'are'} not null"

    def holds(self, scope: Scope) -> str:
        """See `RowExpectation.holds`."""
        return " AND ".join(f"{duckdb_name(column)} IS NOT NULL" for column in self.columns)
