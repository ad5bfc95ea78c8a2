"""The change of a compaction: data files take the place of others with the same rows, and manifests become few.

Each file that stays keeps its sequence numbers, so that every delete file applies to what it applied to (Iceberg spec,
"Sequence Numbers" and "Manifest Inheritance").
"""

from __future__ import annotations

from dataclasses import dataclass

from pyiceberg.table import Transaction
from pyiceberg.table.snapshots import Operation, Summary
from pyiceberg.typedef import EMPTY_DICT

from lakeward.storage.arms.iceberg.producers import OurCommit, ParentMoved, RowDelta, _RowDelta


@dataclass(frozen=True)
class Rewrites(RowDelta):
    """Some of the parent's files go, others come for them; the rows stay the same."""

    def producer(self, transaction: Transaction, properties: dict[str, str], branch: str) -> OurCommit:
        """See `RowDelta`.

        Raises:
            ParentMoved: the branch starts at another snapshot, where other files have those rows.
        """
        start = transaction.table_metadata.snapshot_by_name(branch)
        if start is None or start.snapshot_id != self.parent:
            raise ParentMoved(self.parent)
        producer = _Rewrite(
            operation=Operation.REPLACE,
            transaction=transaction,
            io=transaction._table.io,
            snapshot_properties=properties,
            branch=branch,
        )
        producer.take(self)
        return producer


class _Rewrite(_RowDelta):
    """Makes the snapshot of `Rewrites`."""

    def take(self, change: RowDelta) -> None:
        """Say what it is to do. All manifests that are not large become one, so that planning stays fast."""
        super().take(change)
        self._merge_from = 1

    def _summary(self, snapshot_properties: dict[str, str] = EMPTY_DICT) -> Summary:
        # PyIceberg counts totals for other operations only, by the same rules.
        self._operation = Operation.OVERWRITE
        counted = super()._summary(snapshot_properties)
        self._operation = Operation.REPLACE
        return Summary(Operation.REPLACE, **counted.additional_properties)
