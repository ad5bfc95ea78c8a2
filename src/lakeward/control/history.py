"""The ledger's past: what was written to each dataset, when and by whom."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime

import sqlalchemy

from lakeward.control.db import Database, Queries
from lakeward.control.leases import Owner
from lakeward.control.records import EDIT, NOTHING_TO_WRITE, Transaction
from lakeward.control.transaction_kinds import VERSIONLESS_KINDS

QUERIES = Queries.beside(__file__)

_COLUMNS = tuple(field.name for field in fields(Transaction) if field.name not in ("dataset", "owner"))


@dataclass(frozen=True)
class Recoverable:
    """An open or unpublished transaction. `held`: its owner still works on it, so that recovery leaves it alone.

    `kind` is the transaction's: `move` is only ever finished.
    """

    dataset: str
    version: int
    arm: str
    status: str
    held: bool
    owner: str | None
    kind: str

    def explain(self) -> str:
        """Say what recovery does with it."""
        if self.status != "open":
            return f"publish version {self.version} of {self.dataset} on the {self.arm} arm"
        if self.kind == "move":
            return f"finish the move of the table of {self.dataset}, if it had begun"
        return f"abort version {self.version} of {self.dataset} and remove what it wrote to the {self.arm} arm"

    def to_json(self) -> dict[str, object]:
        """Return it as `--output json` prints it."""
        return dict(vars(self))


@dataclass(frozen=True)
class Activity:
    """What was written to a dataset in some days.

    Args:
        writes: how many versions.
        rows_written: how many rows they added, changed or removed.
        days: how many days those are; fewer than asked for, if the dataset is younger.
        since: when they began, by the database's clock.
    """

    writes: int
    rows_written: int
    days: float
    since: datetime


class History:
    """Reads ledger rows for people and programs; decides nothing."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def recoverable(self, names: Mapping[int, str]) -> list[Recoverable]:
        """Return what a recovery would look at now, without touching it.

        Args:
            names: dataset names by id; rows of other datasets are left out.
        """
        found = []
        for row in self._database.fetch(QUERIES["recoverable"]):
            if row["dataset_id"] not in names:
                continue
            owner = Owner.from_json(row["owner"]) if row["owner"] else None
            held = row["status"] == "open" and not row["expired"] and not (owner is not None and owner.is_dead())
            found.append(
                Recoverable(
                    names[row["dataset_id"]],
                    row["version"],
                    row["arm"],
                    row["status"],
                    held,
                    str(owner) if owner else None,
                    row["kind"],
                )
            )
        return found

    def activity(self, dataset_id: int, days: float) -> Activity:
        """Return what was written to a dataset in the last days."""
        (row,) = self._database.fetch(QUERIES["activity"], {"dataset_id": dataset_id, "days": days})
        return Activity(**row)

    def transactions(
        self,
        names: Mapping[int, str],
        *,
        dataset_id: int | None = None,
        status: str | None = None,
        writer: str | None = None,
        pipeline: str | None = None,
        idle: bool = True,
        before: int | None = None,
        most: int = 100,
    ) -> list[Transaction]:
        """Return ledger rows, newest first.

        Args:
            names: dataset names by id; rows of other datasets are left out.
            dataset_id: of this dataset only.
            status: with this status only.
            writer: of this writer only.
            pipeline: of builds of this pipeline only.
            idle: also those that ended because there was nothing to write.
            before: the `id` of a transaction: only what comes behind it in this order; None: from the newest.
            most: at most so many.
        """
        without = None if idle else NOTHING_TO_WRITE
        asked = {
            "dataset_id": dataset_id,
            "status": status,
            "writer": writer,
            "pipeline": pipeline,
            "known": list(names),
            "without": without,
            "edit": EDIT,
            "before": before,
            "most": most,
        }
        rows = self._database.fetch(QUERIES["transactions"], asked)
        return [_transaction(row, names[row["dataset_id"]]) for row in rows]


def _transaction(row: sqlalchemy.RowMapping, dataset: str) -> Transaction:
    owner = str(Owner.from_json(row["owner"])) if row["owner"] else None
    values = {name: row[name] for name in _COLUMNS}
    if row["kind"] in VERSIONLESS_KINDS:
        # Its own number only keeps it in order: nobody can read a version of it.
        values.update(version=row["parent_version"], readable=False)
    return Transaction(dataset=dataset, owner=owner, **values)
