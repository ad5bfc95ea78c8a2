"""What comparisons of a dataset's two arms found: of each mirrored write, of readers that ask both, and of all rows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lakeward.control.db import Database, Queries

QUERIES = Queries.beside(__file__)

KINDS = ("write", "read", "full")
"""Of comparisons: of what a write changed, of what a reader was given, and of all rows of a version."""

CHUNK = 10_000
"""So many findings are forgotten in one transaction."""


@dataclass(frozen=True)
class ParityCheck:
    """One comparison.

    Args:
        kind: `write`: what a write changed; `read`: what a reader was given; `full`: all rows of a version.
        equal: whether the arms agreed; None: they could not be compared, and `details` says why under `error`. That is
            no mismatch. Only a `read` can end so.
        rows: how many rows were compared on each side.
        details: what else is known: arms, digests, rows that differ, latencies.
    """

    id: int
    at: datetime
    version: int
    kind: str
    equal: bool | None
    rows: int
    details: Mapping[str, Any]

    def to_json(self) -> dict[str, object]:
        """Return it as `--output json` prints it."""
        return {**vars(self), "at": self.at.isoformat(), "details": dict(self.details)}


@dataclass(frozen=True)
class Tally:
    """What comparisons have found since a moment.

    Args:
        reads: how many reads of both arms could be compared.
        mismatches: how many comparisons, of whatever kind, found that the arms differ.
        seconds: the median of what those reads took, by arm.
        elapsed: the seconds since that moment, by the database's clock.
    """

    reads: int
    mismatches: int
    seconds: Mapping[str, float]
    elapsed: float


class ParityChecks:
    """The table `lakeward.parity_checks` of one workspace."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def record(
        self, dataset_id: int, version: int, kind: str, *, equal: bool | None, rows: int, details: Mapping[str, object]
    ) -> None:
        """Write down what a comparison found."""
        values = {"dataset_id": dataset_id, "version": version, "kind": kind, "equal": equal, "rows": rows}
        self._database.fetch(QUERIES["record"], {**values, "details": json.dumps(details, ensure_ascii=False)})

    def newest(
        self, dataset_id: int, kind: str | None = None, *, before: int | None = None, most: int = 20
    ) -> list[ParityCheck]:
        """Return the newest comparisons of a dataset, of one kind or of all, newest first; `before`: after that id."""
        key = {"dataset_id": dataset_id, "kind": kind, "before": before, "most": most}
        return [ParityCheck(**row) for row in self._database.fetch(QUERIES["newest"], key)]

    def seconds_since(self, dataset_id: int, kind: str) -> float | None:
        """Return how long ago a dataset was compared in a way, by the database's clock; None: it never was."""
        key = {"dataset_id": dataset_id, "kind": kind}
        (row,) = self._database.fetch(QUERIES["seconds_since"], key)
        return None if row["seconds"] is None else float(row["seconds"])

    def tally(self, dataset_id: int, since: datetime, arms: tuple[str, str]) -> Tally:
        """Count what comparisons of a dataset have found since a moment.

        Args:
            dataset_id: of which dataset.
            since: by the database's clock.
            arms: whose reading times are wanted.
        """
        key = {"dataset_id": dataset_id, "since": since, "first": arms[0], "second": arms[1]}
        (row,) = self._database.fetch(QUERIES["tally"], key)
        medians = {arms[0]: row["first_seconds"], arms[1]: row["second_seconds"]}
        known = {arm: seconds for arm, seconds in medians.items() if seconds is not None}
        return Tally(row["reads"], row["mismatches"], known, row["elapsed"])

    def mismatch(self, dataset_id: int) -> ParityCheck | None:
        """Return the newest finding that the arms differ; None: there is none, or all rows were found equal since."""
        rows = self._database.fetch(QUERIES["mismatch"], {"dataset_id": dataset_id})
        return ParityCheck(**rows[0]) if rows else None

    def prune(self, dataset_id: int, *, keep: int, grace_seconds: float, dry_run: bool = False) -> int:
        """Forget old findings of a dataset, and return how many. Differences that still stand are never forgotten.

        Args:
            dataset_id: of which dataset.
            keep: so many of the newest of each kind stay.
            grace_seconds: what is younger stays.
            dry_run: only count them.
        """
        most = 0 if dry_run else CHUNK
        key = {"dataset_id": dataset_id, "keep": keep, "grace_seconds": grace_seconds, "most": most}
        forgotten = 0
        while True:
            (found,) = self._database.fetch(QUERIES["prune"], key)
            if dry_run:
                return int(found["outdated"])
            forgotten += int(found["gone"])
            if found["gone"] >= found["outdated"]:
                return forgotten
