"""The expectation `relationship`: rows that another dataset knows."""

from __future__ import annotations

from lakeward.pipelines.expectation import ROWS, Expectation, Refuse, RowExpectation, Scope
from lakeward.pipelines.origin import Origin, Path
from lakeward.pipelines.spec_checks import dataset_name, nearest
from lakeward.types.quoting import duckdb_name

_WHOLE = ("int", "long")


class Relationship(RowExpectation):
    """The values of `columns` are those of `key` in some row of `dataset`.

    A row with a null among them passes, as foreign keys have it, unless `nulls: false` refuses it. A null of the other
    dataset equals nothing.
    """

    name = "relationship"

    columns: list[str]
    dataset: str
    key: list[str]
    nulls: bool = True

    @property
    def reads(self) -> str:
        """See `Expectation.reads`."""
        return self.dataset

    @property
    def lasting(self) -> bool:
        """See `RowExpectation.lasting`: the other dataset's rows come and go."""
        return False

    def checked(self, path: Path, origin: Origin) -> Expectation:
        """See `Expectation.checked`."""
        if not self.columns:
            raise origin.error("'columns' is empty", (*path, "columns"), next_step="write `columns: [column]`")
        if len(self.columns) != len(self.key):
            raise origin.error(
                f"'columns' has {len(self.columns)} and 'key' has {len(self.key)}; they are compared one by one",
                (*path, "key"),
                next_step="write as many columns as keys",
            )
        return self.model_copy(update={"dataset": dataset_name(self.dataset, (*path, "dataset"), origin)})

    def check_columns(self, scope: Scope, path: Path, refuse: Refuse) -> None:
        """See `Expectation.check_columns`."""
        other = scope.schemas[self.dataset]
        for position, (column, key) in enumerate(zip(self.columns, self.key, strict=True)):
            for name, schema, where in ((column, scope.schema, "columns"), (key, other, "key")):
                if name not in schema.names:
                    there = ", ".join(schema.names)
                    hint = nearest(name, schema.names) or "write one of these"
                    raise refuse(f"unknown column {name!r}; there are {there}", (*path, where, position), hint)
            own, its = scope.schema.column(column).type, other.column(key).type
            if own != its and not (own.kind in _WHOLE and its.kind in _WHOLE):
                raise refuse(
                    f"column {column!r} is {own}, and {key!r} of {self.dataset} is {its}: they are never compared",
                    (*path, "columns", position),
                    "cast it in the query",
                )

    def describe(self) -> str:
        """See `Expectation.describe`."""
        return f"{', '.join(self.columns)} is in {self.dataset} as {', '.join(self.key)}"

    def holds(self, scope: Scope) -> str:
        """See `RowExpectation.holds`."""
        return f"NOT ({self._misses(scope)})"

    def measures(self, scope: Scope) -> dict[str, str]:
        """See `Expectation.measures`: none, it has a query."""
        return {}

    def query(self, scope: Scope) -> str:
        """See `Expectation.query`: an anti join, of which the engine makes one pass over either side."""
        return f"SELECT count(*) AS failed FROM {ROWS} WHERE {self._misses(scope)}"

    def failing(self, scope: Scope) -> str:
        """See `Expectation.failing`."""
        return f"SELECT * FROM {ROWS} WHERE {self._misses(scope)}"

    def _misses(self, scope: Scope) -> str:
        other = duckdb_name(scope.others[self.dataset])
        own = [f"{ROWS}.{duckdb_name(column)}" for column in self.columns]
        equal = [f"o.{duckdb_name(key)} = {column}" for column, key in zip(own, self.key, strict=True)]
        there = [f"{column} IS NOT NULL" for column in own] if self.nulls else []
        return " AND ".join([*there, f"NOT EXISTS (SELECT 1 FROM {other} AS o WHERE {' AND '.join(equal)})"])
