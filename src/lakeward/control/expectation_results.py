"""What audits found: one row for each expectation of each version that was judged, committed or refused."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import sqlalchemy

from lakeward.control.db import Database, Queries

QUERIES = Queries.beside(__file__)


@dataclass(frozen=True)
class ExpectationResult:
    """What one expectation found in one version.

    Args:
        position: its place among the output's expectations.
        kind: `row_count`, `not_null` …
        text: what was expected, for people.
        definition: one form of all that it depends on: equal ones judge equal rows alike.
        on_fail: `fail`, `warn` or `quarantine`.
        outcome: `passed`; `vacuous`: it passed because there was nothing to judge; `no data`: an aggregate had no rows;
            or `failed`.
        refused: the build was refused because of it.
        rows_checked, rows_failed: counts of rows.
        observed: the value that was found, exactly, as text.
        message: what was found, for people.
        samples: some of the rows that failed, by their key, as texts by column.
    """

    position: int
    kind: str
    text: str
    definition: str
    on_fail: str
    outcome: str
    refused: bool
    rows_checked: int
    rows_failed: int
    observed: str | None
    message: str
    samples: list[dict[str, str | None]] = field(default_factory=list)

    @property
    def good(self) -> bool:
        """Whether nothing is wrong, or nothing that anybody wants to hear of."""
        return self.outcome in ("passed", "vacuous")

    def to_json(self) -> dict[str, object]:
        """Return it as `--output json` prints it."""
        return {name: value for name, value in vars(self).items() if name != "definition"}


@dataclass(frozen=True)
class JudgedVersion:
    """What was found in one version, and what became of it: `committed`, `aborted`, or it is still `open`."""

    version: int
    status: str
    results: list[ExpectationResult]

    def to_json(self) -> dict[str, object]:
        """Return it as `--output json` prints it."""
        return {"version": self.version, "status": self.status, "results": [each.to_json() for each in self.results]}


_FIELDS = tuple(each.name for each in fields(ExpectationResult))


class ExpectationResults:
    """The table `lakeward.expectation_results` of one workspace."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def keep_behind(self, dataset_id: int, version: int, results: Sequence[ExpectationResult]) -> None:
        """Keep what was found in a version behind what is kept of it already; see `keep`."""
        (row,) = self._database.fetch(QUERIES["kept"], {"dataset_id": dataset_id, "version": version})
        self.keep(dataset_id, version, [replace(each, position=each.position + row["kept"]) for each in results])

    def keep(self, dataset_id: int, version: int, results: Sequence[ExpectationResult]) -> None:
        """Keep what was found in a version, all at once. It stays if the version is refused."""
        rows = [
            {
                **vars(each),
                "samples": json.dumps(each.samples, ensure_ascii=False),
                "dataset_id": dataset_id,
                "version": version,
            }
            for each in results
        ]
        if rows:
            with self._database.transaction() as connection:
                connection.execute(QUERIES["keep"], rows)

    def of_rows(self, dataset_id: int, version: int) -> list[ExpectationResult]:
        """Return what was found in the rows of a committed version, in the order of its expectations.

        Those of a copy, a compaction or a write that no row came for were judged with the version before it.
        """
        rows = self._database.fetch(QUERIES["of_rows"], {"dataset_id": dataset_id, "version": version})
        return [_result(row) for row in rows]

    def judged(self, dataset_id: int, *, version: int | None = None, most: int = 20) -> list[JudgedVersion]:
        """Return what was found in the newest versions that were judged, newest first.

        Args:
            dataset_id: of which dataset.
            version: of this one only.
            most: of at most so many versions.
        """
        values: dict[str, Any] = {"dataset_id": dataset_id, "version": version}
        values["most"] = most if version is None else None
        found: dict[int, JudgedVersion] = {}
        for row in self._database.fetch(QUERIES["judged"], values):
            judged = found.setdefault(row["version"], JudgedVersion(row["version"], row["status"], []))
            judged.results.append(_result(row))
        return list(found.values())


def _result(row: sqlalchemy.RowMapping) -> ExpectationResult:
    return ExpectationResult(**{name: row[name] for name in _FIELDS})
