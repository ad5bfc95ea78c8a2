"""What goes on in a workspace since one last looked: transactions that are opened and end, stages of flips, jobs.

Numbers of rows are given out before their transactions commit, so that a lower one may become visible after a higher
one. So each look goes back a little, and what was told before is left out.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy

from lakeward.access.principal import Place
from lakeward.control.db import Database, Queries
from lakeward.control.names import full_name

QUERIES = Queries.beside(__file__)

OVERLAP = 200
"""So many numbers back is looked at again."""

MOST = 500
"""So many rows of each kind are looked at at once; the next look has the rest."""


@dataclass(frozen=True)
class Happening:
    """One thing that happened.

    Args:
        kind: `opened`, `version`, `aborted`, `flip` or `job`.
        place: the slugs of the dataset; `()`: it is of the whole workspace.
        facts: what is told of it.
        principal: whose doing it is, who may know of it wherever it is; None: the owner's.
    """

    kind: str
    place: Place
    facts: Mapping[str, Any]
    principal: str | None = None


@dataclass
class _Seen:
    """What was told of one table: the newest number, and the state of each row of the overlap."""

    newest: int
    states: OrderedDict[int, str] = field(default_factory=OrderedDict)

    def is_new(self, number: int, state: str) -> bool:
        told = self.states.get(number)
        self.states[number] = state
        self.newest = max(self.newest, number)
        return told != state

    def forget(self) -> None:
        for number in [
            each for each, state in self.states.items() if each <= self.newest - OVERLAP and state != "open"
        ]:
            del self.states[number]


class GoingsOn:
    """Looks at what goes on, from when it is made. For one thread at a time."""

    def __init__(self, database: Database) -> None:
        self._database = database
        (row,) = database.fetch(QUERIES["newest"])
        self._transactions, self._flips = _Seen(row["transaction"]), _Seen(row["flip_event"])
        self._jobs = _Seen(row["job_event"])
        # What is there already is no news; but what is open may end.
        for each in self._look_at_transactions():
            self._transactions.is_new(each["id"], each["status"])
        for each in self._look_at("flip_events", self._flips):
            self._flips.is_new(each["id"], "")
        for each in self._look_at("job_events", self._jobs):
            self._jobs.is_new(each["id"], "")

    def look(self) -> list[Happening]:
        """Return what has happened since the last look, oldest first of each kind."""
        found: list[Happening] = []
        for row in self._look_at_transactions():
            if self._transactions.is_new(row["id"], row["status"]):
                kind = {"open": "opened", "committed": "version", "aborted": "aborted"}[row["status"]]
                found.append(_happening(kind, row))
        flips, jobs = self._look_at("flip_events", self._flips), self._look_at("job_events", self._jobs)
        found += [_happening("flip", row) for row in flips if self._flips.is_new(row["id"], "")]
        found += [_of_job(row) for row in jobs if self._jobs.is_new(row["id"], "")]
        for seen in (self._transactions, self._flips, self._jobs):
            seen.forget()
        return found

    def _look_at_transactions(self) -> list[sqlalchemy.RowMapping]:
        known = [number for number, state in self._transactions.states.items() if state == "open"]
        after = self._transactions.newest - OVERLAP
        return list(self._database.fetch(QUERIES["transactions"], {"after": after, "open": known, "most": MOST}))

    def _look_at(self, query: str, seen: _Seen) -> list[sqlalchemy.RowMapping]:
        return list(self._database.fetch(QUERIES[query], {"after": seen.newest - OVERLAP, "most": MOST}))


def _happening(kind: str, row: sqlalchemy.RowMapping) -> Happening:
    levels, place = ("catalog", "schema", "dataset"), tuple(row["slugs"])
    facts = {name: value for name, value in row.items() if name not in (*levels, "slugs", "id") and value is not None}
    return Happening(kind, place, {"dataset": full_name([row[level] for level in levels]), **facts})


def _of_job(row: sqlalchemy.RowMapping) -> Happening:
    facts = {name: value for name, value in row.items() if name not in ("id", "principal")}
    return Happening("job", (), facts, row["principal"])
