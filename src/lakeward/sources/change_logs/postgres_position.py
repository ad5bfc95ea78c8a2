"""How far a log was read: a place, and the server whose place it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lakeward.sources.change_logs.postgres_slot import Identity
from lakeward.sources.connector import Position


@dataclass(frozen=True)
class LogPosition:
    """A place in the log of a server.

    Args:
        server: whose it is; a place means nothing in the log of another one.
        place: what was committed before it, at a lower place, is read.
    """

    server: Identity
    place: int

    def to_json(self) -> dict[str, Any]:
        """Return it as it is stored."""
        return {**vars(self.server), "place": self.place}

    @classmethod
    def read(cls, stored: Position) -> LogPosition:
        """Read what `to_json` wrote."""
        return cls(Identity(stored["system"], stored["timeline"], stored["database"]), stored["place"])
