"""A dataset and another engine at its Iceberg table, and what has to be true of the two."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import psycopg

import lakeward
from lakeward.storage.requests import Output
from lakeward.types.conform import to_reader
from support.other_engine import Interruptions, OtherEngine

COLUMNS = {"id": "long", "note": "string"}

_numbers = itertools.count(1)


def rows(*ids: int) -> list[dict[str, Any]]:
    return [{"id": number, "note": f"note {number}"} for number in ids]


def output(dataset: lakeward.Dataset, rows: list[dict[str, Any]], mode: str = "append") -> Output:
    """Return one output of a build that has several."""
    record = dataset.record
    return Output(record, mode, lambda: to_reader(rows, record.schema, dataset=record.name))


@dataclass(frozen=True)
class Scene:
    """A dataset with rows 1 and 2 (version 1) and 3 (version 2) on the Iceberg arm."""

    workspace: lakeward.Workspace
    interruptions: Interruptions
    dataset: lakeward.Dataset
    other: OtherEngine

    @property
    def status(self) -> str:
        return self.dataset.status().status

    @property
    def ours(self) -> int:
        """The snapshot of our newest version on the Iceberg arm."""
        held = self.workspace.ledger.newest_arm_version(self.dataset.record.id, "iceberg")
        assert held is not None and held.snapshot_id is not None
        return held.snapshot_id

    def ids(self, **how: Any) -> list[int]:
        return sorted(self.dataset.to_arrow(columns=["id"], **how)["id"].to_pylist())

    def history(self) -> list[tuple[int, str, str, str]]:
        """Version, kind, mode and status of every transaction, oldest first."""
        return [(each.version, each.kind, each.verb, each.status) for each in reversed(self.dataset.history())]

    def audit(self) -> list[tuple[str, Any, Any]]:
        with psycopg.connect(self.workspace.database.libpq_url) as connection:
            return connection.execute(
                "SELECT action, before, after FROM lakeward.audit_log WHERE subject = %s AND action LIKE 'ledger.%%' "
                "ORDER BY id",
                (self.dataset.name,),
            ).fetchall()

    def assert_whole(self) -> None:
        """Our newest version is what other engines see, and every arm that holds it has the same rows."""
        assert self.status == "ok"
        assert self.other.main == self.ours
        self.dataset.verify()
        assert self.dataset.row_count == len(self.ids())
        identity = self.dataset.to_arrow(identity=True).to_pylist()
        assert len({row["__row_id"] for row in identity}) == len(identity)
        assert sorted(identity, key=lambda row: row["__row_id"]) == sorted(
            self.other.rows(), key=lambda row: row["__row_id"]
        )

    @classmethod
    def make(
        cls, workspace: lakeward.Workspace, interruptions: Interruptions, columns: dict[str, str] | None = None
    ) -> Scene:
        dataset = workspace.create_dataset(f"main.foreign.d{next(_numbers)}", columns or COLUMNS, ["id"], arm="iceberg")
        more = dict.fromkeys((columns or COLUMNS).keys() - COLUMNS.keys(), 0)
        dataset.write([{**row, **more} for row in rows(1, 2)])
        dataset.write([{**row, **more} for row in rows(3)])
        return cls(workspace, interruptions, dataset, OtherEngine(workspace, dataset))
