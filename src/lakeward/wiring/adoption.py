"""The handle that brings existing Iceberg tables under datasets: `Workspace.adopting`."""

from __future__ import annotations

from collections.abc import Sequence

from lakeward.control.identifiers import TableIdentifier
from lakeward.errors import UsageError
from lakeward.storage.adopting import Adopting, AdoptionPlan
from lakeward.storage.requests import WriteResult
from lakeward.wiring.actor import actor


class Adoption:
    """Looks at tables that other engines have written, and adopts them."""

    def __init__(self, adopting: Adopting) -> None:
        self._adopting = adopting

    def plan(
        self,
        table: str | TableIdentifier,
        name: str | None = None,
        primary_key: Sequence[str] = (),
        *,
        allow: Sequence[str] = (),
        add_identity: bool = False,
        stays: bool = False,
    ) -> AdoptionPlan:
        """Check a table and all its rows, and say what adopting it would do. Changes nothing.

        Args:
            table: its name in the catalog; as text, levels joined by dots.
            name: of the dataset, `catalog.schema.dataset`; None: as the table's, with `main` in front where that is
                shorter.
            primary_key: names of the key columns.
            allow: addresses outside of the warehouse below which its files may be.
            add_identity: write the rows anew at once, with their identity columns; else the first write does that.
            stays: the table belongs where it is, so that no sweep moves it to where the dataset's name says.

        Raises:
            UnknownObject, ConflictError, NameTaken, SchemaError, ColumnMismatch, DataError, UsageError: see
                `lakeward.storage.adopting.Adopting.plan`.

        Example:
            >>> plan = ws.adopting.plan("legacy.orders", "main.sales.orders", ["id"])  # doctest: +SKIP
            >>> ws.adopting.run(plan).version  # doctest: +SKIP
            1
        """
        identifier = table if isinstance(table, TableIdentifier) else _identifier(table)
        return self._adopting.plan(identifier, name, primary_key, roots=allow, add_identity=add_identity, stays=stays)

    def has_table(self, table: TableIdentifier) -> bool:
        """Say whether the catalog has a table of that name, whosever it is."""
        return self._adopting.has_table(table)

    def run(self, plan: AdoptionPlan) -> WriteResult:
        """Carry a plan out; see `lakeward.storage.adopting.Adopting.run`."""
        return self._adopting.run(plan, actor=actor())


def _identifier(text: str) -> TableIdentifier:
    parts = text.split(".")
    if len(parts) < 2 or not all(parts):
        raise UsageError(
            f"{text!r} is no table's name: at least one namespace and the table, joined by dots",
            next_step="lakeward dataset adopt NAMESPACE.TABLE",
        )
    return TableIdentifier.of(parts)
