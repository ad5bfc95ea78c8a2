"""A source that a test follows, and what came of it here."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import psycopg

import lakeward
from lakeward.wiring.follow_plan import FollowRequest
from lakeward.wiring.follow_worker import Followed
from lakeward.wiring.following import FollowState
from lakeward.wiring.sync_plan import SyncRequest


class Shop:
    """One source of a workspace.

    Args:
        ws: the workspace.
        name: the source's.
        server: a session at the source that commits each statement.
    """

    def __init__(self, ws: lakeward.Workspace, name: str, server: psycopg.Connection) -> None:
        self.ws = ws
        self.name = name
        self.run = server.execute

    def follow(self, *tables: str, say: Callable[[str], None] = lambda text: None, **how: object) -> Followed:
        """Follow until everything that is logged by now is here."""
        return self.ws.sources.follow(FollowRequest(self.name, tables, **how), once=True, say=say)  # type: ignore[arg-type]

    def dataset(self, table: str) -> lakeward.Dataset:
        """Return a table's dataset."""
        return self.ws.dataset(f"main.{self.name}.{table}")

    def rows(self, table: str) -> list[tuple[object, ...]]:
        """Return all rows here, sorted, as tuples."""
        found = self.dataset(table).to_arrow().to_pylist()
        return sorted((tuple(row.values()) for row in found), key=lambda row: json.dumps(row, default=str))

    def there(self, table: str) -> list[tuple[object, ...]]:
        """Return all rows at the source, in the same way."""
        found = self.run(f"SELECT * FROM {table}").fetchall()  # type: ignore[arg-type]
        return sorted(found, key=lambda row: json.dumps(row, default=str))

    def equals(self, *tables: str) -> bool:
        """Say whether datasets have the digests that a whole sync of their tables has, on every arm that has them."""
        into = f"whole.{self.name}"
        self.ws.sources.sync(SyncRequest(self.name, tables, into=into, allow_empty=True))
        return all(
            set(self.dataset(table).verify().digests.values()) == {self.ws.dataset(f"{into}.{table}").digest()}
            for table in tables
        )

    @property
    def state(self) -> FollowState | None:
        """How it stands; None: it is not followed."""
        return next((each for each in self.ws.sources.followed() if each.followed.source == self.name), None)

    def slots(self) -> list[str]:
        """Return what the server keeps for this source."""
        rows = self.run(
            "SELECT slot_name FROM pg_replication_slots UNION SELECT pubname FROM pg_publication"
        ).fetchall()
        return [name for (name,) in rows if re.fullmatch(f"lakeward_{self.name}_[0-9a-f]{{8}}", name)]
