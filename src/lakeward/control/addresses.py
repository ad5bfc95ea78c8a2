"""Datasets by where their Iceberg tables are in the catalog, and the commits of their versions."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from lakeward.control.audit import audit
from lakeward.control.db import Database, Queries
from lakeward.control.identifiers import LEGACY_NAMESPACE, TableIdentifier, declared
from lakeward.control.tree import DatasetRecord

QUERIES = Queries.beside(__file__)


@dataclass(frozen=True)
class Commit:
    """The transaction that made a version.

    Args:
        id: of the transaction, in the ledger.
        committed_at: by the database's clock.
        row_count: of the version.
        snapshot_id: that holds it in the Iceberg table; None: that arm has not this version.
        first: the dataset had no version before.
    """

    id: int
    committed_at: datetime
    row_count: int
    snapshot_id: int | None
    first: bool


class Addresses:
    """The places of tables of one workspace.

    Args:
        database: of the control plane.
        workspace: its id.
    """

    def __init__(self, database: Database, workspace: int) -> None:
        self._database = database
        self._workspace = workspace

    def at(self, table: TableIdentifier) -> int | None:
        """Return the id of the live dataset that is meant by a table's name; None: there is none.

        It is the one whose table has that name; else whose table belongs there, as it will be made there; else whose
        table was moved away from there, so that nobody writes half of it to a second table of the old name.
        """
        rows = self._database.fetch(
            QUERIES["at"],
            {
                "workspace": self._workspace,
                "namespace": list(table.namespace),
                "name": table.name,
                "legacy": list(LEGACY_NAMESPACE),
            },
        )
        return int(rows[0]["id"]) if rows else None

    def commit(self, dataset_id: int, version: int) -> Commit | None:
        """Return the transaction that made a version; None: there is no such version."""
        rows = self._database.fetch(QUERIES["commit"], {"dataset_id": dataset_id, "version": version})
        return Commit(**rows[0]) if rows else None

    def version_of(self, dataset_id: int, snapshot_id: int) -> int | None:
        """Return the newest readable version that a snapshot of the dataset's table holds; None: it holds none."""
        found = self._database.fetch(QUERIES["version_of"], {"dataset_id": dataset_id, "snapshot_id": snapshot_id})
        version: int | None = found[0]["version"]
        return version

    def set_home(self, record: DatasetRecord, home: TableIdentifier | None, actor: str) -> None:
        """Declare where a dataset's table belongs; it stays where it is until it is moved.

        Args:
            record: whose.
            home: where; None: under the dataset's slugs.
            actor: who does it, for the audit log.
        """
        before, after = record.declared_home, home
        if before == after:
            return
        with self._database.transaction() as connection:
            connection.execute(QUERIES["set_home"], {"dataset_id": record.id, **declared(home)})
            told = [list(each.parts) if each is not None else None for each in (before, after)]
            audit(connection, actor, "move.home", record.name, {"home": told[0]}, {"home": told[1]}, record.slugs)
