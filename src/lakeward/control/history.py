"""The ledger's past: what was written to each dataset, when and by whom."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

import sqlalchemy

from lakeward.control.db import Database, Queries
from lakeward.control.leases import Owner
from lakeward.control.records import Transaction

QUERIES = Queries.beside(__file__)

_COLUMNS = tuple(field.name for field in fields(Transaction) if field.name not in ("dataset", "owner"))


class History:
    """Reads ledger rows for people and programs; decides nothing."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def transactions(
        self, names: Mapping[int, str], *, dataset_id: int | None = None, status: str | None = None, most: int = 100
    ) -> list[Transaction]:
        """Return ledger rows, newest first.

        Args:
            names: dataset names by id; rows of other datasets are left out.
            dataset_id: of this dataset only.
            status: with this status only.
            most: at most so many.
        """
        rows = self._database.fetch(QUERIES["transactions"], {"dataset_id": dataset_id, "status": status, "most": most})
        return [_transaction(row, names[row["dataset_id"]]) for row in rows if row["dataset_id"] in names]


def _transaction(row: sqlalchemy.RowMapping, dataset: str) -> Transaction:
    owner = str(Owner.from_json(row["owner"])) if row["owner"] else None
    return Transaction(dataset=dataset, owner=owner, **{name: row[name] for name in _COLUMNS})
