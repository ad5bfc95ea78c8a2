"""The expectation `row`: a predicate that is true for every row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lakeward.compute.lasting import is_lasting
from lakeward.compute.pitfalls import null_traps
from lakeward.compute.predicate import check_predicate
from lakeward.pipelines.expectation import Expectation, RowExpectation, Scope, check_sql
from lakeward.pipelines.origin import Origin, Path
from lakeward.types.logical import LogicalType


class Row(RowExpectation):
    """`check` is true for every row. A row for which it is null fails, unless `nulls: true` lets it pass."""

    name = "row"
    bare = "check"

    check: str
    nulls: bool = False

    def checked(self, path: Path, origin: Origin) -> Expectation:
        """See `Expectation.checked`."""
        if not self.check.strip():
            raise origin.error("'check' is empty", path, next_step='write `row: {check: "amount >= 0"}`')
        check_sql(self.check, check_predicate, (*path, "check"), origin)
        return self

    def check_type(self, type_: LogicalType) -> str | None:
        """See `Expectation.check_type`."""
        return None if type_.kind == "boolean" else f"is {type_}, and should be true or false"

    def describe(self) -> str:
        """See `Expectation.describe`."""
        return " ".join(self.check.split())

    def facts(self) -> dict[str, Any]:
        """See `Expectation.facts`."""
        return {**super().facts(), "check": check_predicate(self.check)}

    def texts(self) -> Mapping[str, str]:
        """See `Expectation.texts`."""
        return {"check": self.check}

    def warnings(self) -> list[str]:
        """See `Expectation.warnings`."""
        return null_traps(self.check)

    @property
    def lasting(self) -> bool:
        """See `RowExpectation.lasting`."""
        return is_lasting(self.check)

    def holds(self, scope: Scope) -> str:
        """See `RowExpectation.holds`. The text stands on lines of its own, so that no comment swallows what follows."""
        return f"coalesce(CAST((\n{self.check}\n) AS BOOLEAN), {'true' if self.nulls else 'false'})"
