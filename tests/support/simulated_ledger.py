"""Watches the ledger of a simulated schedule from outside, and says after every move whether the promises hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import psycopg

from lakeward.control.records import ArmVersion
from lakeward.control.tree import DatasetRecord
from lakeward.storage.arm import Scan
from lakeward.storage.table import table_ref
from lakeward.testing.drill.writes import NOTHING, Content, Row, Write
from support.simulated_arms import Store

_TRANSACTIONS = """
SELECT t.id, t.dataset_id, t.version, t.parent_version, t.status, t.verb, t.pipeline, t.published_at IS NOT NULL,
       a.snapshot_id
FROM lakeward.dataset_transactions t
LEFT JOIN lakeward.arm_versions a ON a.dataset_id = t.dataset_id AND a.version = t.version
WHERE t.dataset_id = ANY (%s) ORDER BY t.dataset_id, t.version
"""
_DATASETS = """
SELECT d.id, d.head_version, d.row_count, d.status, w.version FROM lakeward.datasets d
LEFT JOIN lakeward.watermarks w ON w.dataset_id = d.id AND w.source_id = d.id WHERE d.id = ANY (%s)
"""


class LedgerWatch:
    """Follows two datasets.

    Args:
        outside: a connection in autocommit mode that belongs to no actor.
        records: the datasets.
        stores: what is on the arms, by name.
        writes: every write that was asked for, by label; grows.
    """

    def __init__(
        self,
        outside: psycopg.Connection[Any],
        records: Sequence[DatasetRecord],
        stores: Mapping[str, Store],
        writes: Mapping[str, Write],
    ) -> None:
        self._outside = outside
        self._records = {record.id: record for record in records}
        self._stores = stores
        self._writes = writes
        self._ended: dict[int, str] = {}
        self._committed: dict[int, dict[str, int]] = {}
        self.content: dict[int, dict[int, Content]] = {}
        """What each committed version must hold."""
        self.told: dict[str, bool] = {}
        """Whether writers were told that their write is committed; where they were told anything."""

    def check(self) -> None:
        """Check every promise.

        Raises:
            AssertionError: one does not hold.
        """
        ids = list(self._records)
        rows = self._outside.execute(_TRANSACTIONS, (ids,)).fetchall()
        for id_, head, row_count, status, watermark in self._outside.execute(_DATASETS, (ids,)).fetchall():
            self._check_dataset(id_, [row for row in rows if row[1] == id_], head, row_count, status, watermark)
        for row in rows:
            # What has ended stays so: nobody who wakes up late commits, or aborts, what is settled.
            before = self._ended.get(row[0])
            assert before is None or before == row[4], f"{row[6]} was {before} and is {row[4]}"
            if row[4] != "open":
                self._ended[row[0]] = row[4]
        self._check_builds()

    def _check_dataset(
        self, id_: int, rows: Sequence[tuple[Any, ...]], head: int, row_count: int, status: str, watermark: int | None
    ) -> None:
        record = self._records[id_]
        open_ = [row[2] for row in rows if row[4] == "open"]
        assert len(open_) <= 1, f"{record.arm}: versions {open_} are open at once"
        assert status != "diverged", f"{record.arm} is marked as diverged, and there is no other engine"
        content: dict[int, Content] = {0: NOTHING}
        labels: dict[str, int] = {}
        last, last_number, snapshots = 0, None, {0: 0}
        for _, _, version, parent, _, verb, label, published, snapshot in (
            row for row in rows if row[4] == "committed"
        ):
            assert parent == last, f"{record.arm}: version {version} starts from {parent}, {last} was the newest"
            assert label not in labels, f"{record.arm}: {label} is committed twice"
            write = self._writes[label]
            assert verb == write.mode(record.name), f"{record.arm}: {label} is committed as {verb}"
            content[version] = write.applied(record.name, content[last])
            labels[label] = last = version
            last_number, snapshots[version] = write.number, snapshot
            stored = self._read(record, version, snapshot)
            expected = content[version].rows
            assert stored == expected, f"{record.arm}: version {version} is {stored}, not {expected}"
            if published and record.arm == "iceberg":
                main = self._stores["iceberg"].main.get(id_, 0)
                assert main >= snapshot, f"version {version} is recorded as published, main is at {main}"
        assert head == last, f"{record.arm}: the head is {head}, the newest committed version {last}"
        rows_then = len(content[last].rows)
        assert row_count == rows_then, f"{record.arm}: {row_count} rows are counted, not {rows_then}"
        assert watermark == last_number, f"{record.arm}: the watermark is {watermark}, not {last_number}"
        main = self._stores["iceberg"].main.get(id_, 0)
        assert main in snapshots.values(), f"main shows snapshot {main}, which is not committed"
        if record.arm == "postgres":
            allowed = {*content, *open_}
            strangers = set(self._stores["postgres"].arm.versions(table_ref(record))) - allowed
            assert not strangers, f"rows of versions {strangers}, which have ended without being committed"
        self.content[id_], self._committed[id_] = content, labels

    def _read(self, record: DatasetRecord, version: int, snapshot: int) -> tuple[Row, ...]:
        where = ArmVersion(version, version, snapshot, None)
        table = self._stores[record.arm].arm.scan(table_ref(record), where, Scan(record.schema.names)).read_all()
        return tuple(zip(table["id"].to_pylist(), table["note"].to_pylist(), strict=True))

    def _check_builds(self) -> None:
        """All outputs of a build or none, and every writer was told the truth."""
        for label, write in self._writes.items():
            names = {name for name, _, _ in write.outputs}
            there = {label in self._committed[id_] for id_, record in self._records.items() if record.name in names}
            assert len(there) == 1, f"{label}: one output is committed, the other is not"
            told = self.told.get(label)
            assert told is None or told in there, f"{label}: its writer was told {told}, and it is {not told}"

    def check_heads(self, heads: Mapping[int, int]) -> None:
        """Check that a reader of these heads sees all outputs of each build or none."""
        self.check()
        for label, write in self._writes.items():
            names = {name for name, _, _ in write.outputs}
            seen = {
                self._committed[id_].get(label, heads[id_] + 1) <= heads[id_]
                for id_, record in self._records.items()
                if record.name in names
            }
            assert len(seen) == 1, f"{label}: a reader saw one output and not the other"

    def check_ended(self, labels: Sequence[str]) -> None:
        """Check that none of these writes is open under its own lease any more."""
        left = self._outside.execute(
            "SELECT t.pipeline, t.version FROM lakeward.dataset_transactions t JOIN lakeward.leases l "
            "ON l.transaction_id = t.id WHERE t.dataset_id = ANY (%s) AND t.pipeline = ANY (%s) "
            "AND t.status = 'open' AND l.lease_until > clock_timestamp() "
            # Not taken over: that gives whoever does it a lease of its own.
            "AND l.acquired_at < t.opened_at + interval '0.2 ms'",
            (list(self._records), list(labels)),
        ).fetchall()
        assert not left, f"left open by a writer that lives: {left}"

    def clean(self) -> None:
        """Check that nothing is left to do: no open or unpublished transaction, no lease."""
        ids = list(self._records)
        left = self._outside.execute(
            "SELECT t.version, t.status FROM lakeward.dataset_transactions t "
            "LEFT JOIN lakeward.leases l ON l.transaction_id = t.id "
            "WHERE t.dataset_id = ANY (%s) AND (t.status = 'open' OR l.fence IS NOT NULL "
            "OR (t.status = 'committed' AND t.published_at IS NULL))",
            (ids,),
        ).fetchall()
        assert not left, f"left over: {left}"
