"""Deletes rows of the Postgres arm that no version sees any more, in chunks, without keeping anybody waiting.

A row is seen at version v if `base(v) <= version <= v` and (`until` is null or `until > v`). So rows whose version lies
between the ranges `base(v)` to `v` of the versions that are needed are dead, whatever they say; of the others, those
with an `until` are asked one by one. Rows and marks of an open transaction are newer than every committed version: they
are above every range, and never looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lakeward.clock import Faults
from lakeward.control.db import Database, Queries
from lakeward.control.retention import HeldVersion
from lakeward.storage.leftovers import Leftover, TidyTask

QUERIES = Queries.beside(__file__)

CHUNK_ROWS = 20_000
"""So many rows are deleted in one transaction."""

_ARM = "postgres"


class RowUpkeep:
    """Tidies `dataset_rows`.

    Args:
        database: where it is.
        faults: called as `maintain:rows` before each chunk.
    """

    def __init__(self, database: Database, faults: Faults) -> None:
        self._database = database
        self._faults = faults

    def tidy(self, task: TidyTask) -> Iterator[Leftover]:
        """Delete what is not needed, and yield each kind of it when it is gone; in a dry run, what would go."""
        key: dict[str, object] = {"dataset_id": task.table.dataset_id}
        held = task.of_arm(_ARM)
        needed = [each for each in held if each.needed(task.grace_seconds)]
        for low, high in dead_ranges(needed, task.head_version):
            yield from self._delete(task, "range", f"of versions {low} to {high}", {**key, "low": low, "high": high})
        if needed:
            versions: dict[str, object] = {
                "bases": [each.base_version for each in needed],
                "versions": [each.version for each in needed],
                "newest": max(each.version for each in needed),
            }
            yield from self._delete(task, "replaced", "that later versions replaced", {**key, **versions})
        # Recovery removes them before it ends a transaction; this finds some if the ledger was repaired by hand.
        yield from self._delete(task, "aborted", "of aborted versions", key)

    def replaced(self, dataset_id: int) -> int:
        """Return how many rows there are that a later version has replaced."""
        return int(self._database.fetch(QUERIES["replaced"], {"dataset_id": dataset_id})[0]["rows"])

    def _delete(self, task: TidyTask, name: str, what: str, parameters: dict[str, object]) -> Iterator[Leftover]:
        total = 0
        if task.dry_run:
            total = int(self._database.fetch(QUERIES[f"count_{name}"], parameters)[0]["rows"])
        else:
            while True:
                self._faults.at("maintain:rows")
                limit = {"chunk": CHUNK_ROWS}
                deleted = int(self._database.fetch(QUERIES[f"delete_{name}"], {**parameters, **limit})[0]["rows"])
                total += deleted
                # Fewer than a chunk: the rest is gone, or another one that tidies has it under its hands.
                if deleted < CHUNK_ROWS:
                    break
        if total:
            yield Leftover(task.table.name, "rows", f"rows {what}", count=total)


def dead_ranges(needed: Iterable[HeldVersion], head_version: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges of row versions, both ends included, that no needed version sees, in ascending order.

    Args:
        needed: the versions that must stay whole. If there are none, all up to the head are dead.
        head_version: the newest committed one; nothing above it is ever dead.
    """
    seen_up_to = 0
    held = sorted((each.base_version, each.version) for each in needed)
    for base, version in held:
        if base > seen_up_to + 1:
            yield seen_up_to + 1, base - 1
        seen_up_to = max(seen_up_to, version)
    if not held and head_version:
        yield 1, head_version
