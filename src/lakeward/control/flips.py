"""The flips of a workspace, as the control plane keeps them: who wants a dataset on which arm, and what was done."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy

from lakeward.control.db import Database, Queries
from lakeward.control.leases import Heartbeat, Owner
from lakeward.errors import Contended, ControlError

QUERIES = Queries.beside(__file__)


@dataclass(frozen=True)
class FlipRecord:
    """One flip: a dataset on its way to an arm. How far it is, the route and the ledger say.

    Args:
        id: of the flip.
        dataset_id: of the dataset.
        to: the arm that is to serve it.
        started_by, started_at: by whom, and when by the database's clock.
        ended_at: None while it goes on.
        outcome: `completed`, `reverted` or `cancelled`; None while it goes on.
        owner: the process that works on it now, if any.
    """

    id: int
    dataset_id: int
    to: str
    started_by: str
    started_at: datetime
    ended_at: datetime | None
    outcome: str | None
    owner: str | None
    fence: int


@dataclass(frozen=True)
class FlipEvent:
    """What happened in a flip: a stage `started`, is `done`, has `failed` or was `undone`."""

    at: datetime
    stage: str
    event: str
    actor: str
    seconds: float | None
    details: Mapping[str, Any]

    def to_json(self) -> dict[str, object]:
        """Return it as `--output json` prints it."""
        return {**vars(self), "at": self.at.isoformat(), "details": dict(self.details)}


@dataclass(frozen=True)
class Measured:
    """How long a backfill took, and how many bytes it brought, in memory."""

    bytes: int
    seconds: float


class Flips:
    """The tables `lakeward.flips` and `lakeward.flip_events` of one workspace.

    Args:
        database: where they are.
        lease_seconds: how long a process that shows no sign of life keeps a flip to itself.
    """

    def __init__(self, database: Database, *, lease_seconds: float = 60.0) -> None:
        self._database = database
        self._lease_seconds = lease_seconds
        self._owner = Owner.current()

    def begin(self, dataset_id: int, to: str, actor: str) -> FlipRecord:
        """Return the dataset's flip that goes on; begin one if there is none. It may be one to another arm."""
        self._database.fetch(QUERIES["begin"], {"dataset_id": dataset_id, "to_arm": to, "actor": actor})
        found = self.active(dataset_id)
        assert found is not None, "it was there, or has been made"
        return found

    def active(self, dataset_id: int) -> FlipRecord | None:
        """Return the dataset's flip that goes on; None: there is none."""
        rows = self._database.fetch(QUERIES["active"], {"dataset_id": dataset_id})
        return _record(rows[0]) if rows else None

    def newest(self, dataset_id: int) -> FlipRecord | None:
        """Return the dataset's newest flip, ended or not; None: it never had one."""
        rows = self._database.fetch(QUERIES["newest"], {"dataset_id": dataset_id})
        return _record(rows[0]) if rows else None

    def all(self, *, ended: bool = False, most: int = 1000) -> list[FlipRecord]:
        """Return flips, newest first.

        Args:
            ended: also those that have ended.
            most: at most so many.
        """
        return [_record(row) for row in self._database.fetch(QUERIES["all"], {"ended": ended, "most": most})]

    @contextmanager
    def held(self, flip: FlipRecord, dataset: str) -> Iterator[Heartbeat]:
        """Keep a flip to this process for a block. What its stages do is safe without; this keeps two from racing.

        Raises:
            Contended: another process works on it.
        """
        fence = self._claim(flip, dataset)
        key = {"id": flip.id, "fence": fence}

        def renew() -> bool:
            return bool(self._database.fetch(QUERIES["renew"], {**key, "lease_seconds": self._lease_seconds}))

        try:
            with Heartbeat(renew, self._lease_seconds / 3) as heartbeat:
                yield heartbeat
        except BaseException as error:
            # What went wrong in the block is what is told, also if the lease has to end by itself.
            try:
                self._database.fetch(QUERIES["release"], key)
            except ControlError as second:
                error.add_note(f"The lease on the flip could not be given back, and ends by itself: {second.message}")
            raise
        self._database.fetch(QUERIES["release"], key)

    def end(self, flip: FlipRecord, outcome: str) -> None:
        """End a flip; repeating it changes nothing."""
        self._database.fetch(QUERIES["end"], {"id": flip.id, "outcome": outcome})

    def note(
        self,
        flip: FlipRecord,
        stage: str,
        event: str,
        actor: str,
        *,
        seconds: float | None = None,
        details: Mapping[str, object] | None = None,
    ) -> None:
        """Write down what happened."""
        self._database.fetch(
            QUERIES["note"],
            {
                "flip_id": flip.id,
                "stage": stage,
                "event": event,
                "actor": actor,
                "seconds": seconds,
                "details": json.dumps(details or {}, ensure_ascii=False),
            },
        )

    def measured(self, to: str, rows: int, *, most: int = 5) -> list[Measured]:
        """Return the newest backfills to an arm of at least so many rows, of any dataset."""
        key = {"to_arm": to, "rows": rows, "most": most}
        return [Measured(int(row["bytes"]), row["seconds"]) for row in self._database.fetch(QUERIES["measured"], key)]

    def writers(self, dataset_id: int) -> list[str]:
        """Return the names of those places in the product that have written a dataset."""
        return [row["writer"] for row in self._database.fetch(QUERIES["writers"], {"dataset_id": dataset_id})]

    def adopted(self, dataset_id: int) -> bool:
        """Say whether rows that another engine wrote were ever adopted: those came in without being judged."""
        (row,) = self._database.fetch(QUERIES["adopted"], {"dataset_id": dataset_id})
        return bool(row["adopted"])

    def events(self, flip: FlipRecord) -> list[FlipEvent]:
        """Return what happened, oldest first."""
        return [FlipEvent(**row) for row in self._database.fetch(QUERIES["events"], {"flip_id": flip.id})]

    def _claim(self, flip: FlipRecord, dataset: str) -> int:
        rows = self._database.fetch(QUERIES["newest"], {"dataset_id": flip.dataset_id})
        owner = Owner.from_json(rows[0]["owner"]) if rows and rows[0]["owner"] else None
        claim = {
            "id": flip.id,
            "fence": rows[0]["fence"],
            "dead": owner is not None and owner.is_dead(),
            "owner": json.dumps(self._owner.to_json()),
            "lease_seconds": self._lease_seconds,
        }
        taken = self._database.fetch(QUERIES["claim"], claim)
        if not taken:
            raise Contended(
                f"the flip of dataset {dataset} is worked on by {owner or 'another process'}",
                safe="nothing was changed",
                next_step=f"wait for it: lakeward flip status {dataset}",
                dataset=dataset,
            )
        return int(taken[0]["fence"])


def _record(row: sqlalchemy.RowMapping) -> FlipRecord:
    owner = str(Owner.from_json(row["owner"])) if row["owner"] and row["held"] else None
    return FlipRecord(
        row["id"],
        row["dataset_id"],
        row["to_arm"],
        row["started_by"],
        row["started_at"],
        row["ended_at"],
        row["outcome"],
        owner,
        row["fence"],
    )
