"""Where every dataset stands at one glance, in one question to Postgres, however many there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy

from lakeward.access.guard import sees
from lakeward.control.db import Database, Queries
from lakeward.control.names import full_name
from lakeward.control.records import NOTHING_TO_WRITE

QUERIES = Queries.beside(__file__)

TROUBLE = ("diverged", "failing", "behind", "unpublished", "warned", "stale")
"""What may be wrong with a dataset, the worst first.

- diverged: another engine wrote to its Iceberg table, and nobody has decided what becomes of that;
- failing: what was last tried to be written to it failed;
- behind: its mirror has not its newest version;
- unpublished: other engines don't see its newest version yet;
- warned: an expectation that only warns has failed in its newest rows;
- stale: a dataset that its pipeline reads has changed since it was built.
"""


@dataclass(frozen=True)
class Glance:
    """One dataset at one moment.

    Args:
        id: its number.
        name: in full.
        path, slugs: its name by levels, and the places that access goes by.
        version, row_count: of its head.
        mode, arm, mirror: its route.
        created_at: when it was made.
        written_at: when its newest rows were committed; None: it was never written.
        pipeline: what wrote them; None: no pipeline did.
        trouble: those of `TROUBLE` that it is in.
        error, failed_at: of the write that failed last, if none was in order since.
        newer: names of datasets that changed since it was built from them.
        missed: how far its mirror is: the version that it holds; None: there is none, or it holds none.
        writing_since: since when somebody writes to it; None: nobody does.
        flipping_to: the arm that a flip under way brings it to; None: there is none.
    """

    id: int
    name: str
    path: tuple[str, str, str]
    slugs: tuple[str, str, str]
    version: int
    row_count: int
    mode: str
    arm: str
    mirror: str | None
    created_at: datetime
    written_at: datetime | None
    pipeline: str | None
    trouble: tuple[str, ...]
    error: str | None
    failed_at: datetime | None
    newer: tuple[str, ...]
    missed: int | None
    writing_since: datetime | None
    flipping_to: str | None


class Glances:
    """Looks at the datasets of one workspace.

    Args:
        database: where they are.
        workspace: its id.
    """

    def __init__(self, database: Database, workspace: int) -> None:
        self._database = database
        self._workspace = workspace

    def all(self) -> list[Glance]:
        """Return those that who asks may see, by name."""
        rows = self._database.fetch(QUERIES["glance"], {"workspace": self._workspace, "nothing": NOTHING_TO_WRITE})
        seen = [row for row in rows if sees((row["catalog_slug"], row["schema_slug"], row["slug"]))]
        names = {row["id"]: full_name((row["catalog"], row["schema"], row["name"])) for row in seen}
        return [_glance(row, names) for row in seen]


def _glance(row: sqlalchemy.RowMapping, names: Mapping[int, str]) -> Glance:
    # A source that who asks may not see is not named, but makes its reader stale all the same.
    newer: Sequence[int] = row["newer_sources"] or ()
    wrong = {
        "diverged": row["status"] == "diverged",
        "failing": row["error"] is not None,
        "behind": row["mirror_arm"] is not None and (row["mirror_version"] or 0) != row["head_version"],
        "unpublished": row["unpublished"],
        "warned": row["warned"],
        "stale": bool(newer),
    }
    return Glance(
        row["id"],
        names[row["id"]],
        (row["catalog"], row["schema"], row["name"]),
        (row["catalog_slug"], row["schema_slug"], row["slug"]),
        row["head_version"],
        row["row_count"],
        row["mode"],
        row["primary_arm"],
        row["mirror_arm"],
        row["created_at"],
        row["written_at"],
        row["pipeline"],
        tuple(each for each in TROUBLE if wrong[each]),
        row["error"],
        row["failed_at"],
        tuple(names[each] for each in newer if each in names),
        row["mirror_version"],
        row["writing_since"],
        row["flipping_to"],
    )
