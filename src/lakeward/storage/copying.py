"""Copies of a dataset's newest version on another arm, verified before anybody sees them.

A small dataset is copied in one transaction. Of a large one the rows are brought first, as those of a backfill, while
writers go on, and compared; the transaction that makes the copy a version then brings what was written since.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa

from lakeward.control.tree import DatasetRecord, Tree
from lakeward.errors import UsageError
from lakeward.storage.arm import Scan, WriteTask
from lakeward.storage.counted import counted
from lakeward.storage.parity import Parity
from lakeward.storage.protocol import WriteProtocol
from lakeward.storage.replication import Replication
from lakeward.storage.requests import Brought, Output, PreparedVersion, WriteResult
from lakeward.storage.routing import Place, Routing
from lakeward.storage.table import table_ref
from lakeward.types.digest import Digest

AT_ONCE_ROWS = 100_000
"""Up to so many rows writers wait no longer for a whole copy than for what comes around two steps."""


class Copying:
    """Makes copies, in one workspace.

    Args:
        tree: names and what they stand for.
        routing: where versions are.
        protocol: how a copy becomes visible.
        replication: brings rows while writers go on.
    """

    def __init__(self, tree: Tree, routing: Routing, protocol: WriteProtocol, replication: Replication) -> None:
        self._tree = tree
        self._routing = routing
        self._protocol = protocol
        self._replication = replication

    def copy(
        self,
        dataset: DatasetRecord,
        to: str,
        *,
        writer: str = "dataset.copy",
        progress: Callable[[int], None] | None = None,
    ) -> WriteResult:
        """Bring the head version to another arm, identity columns included, verified before it is visible.

        The copy is a version of its own that changes no row: both arms hold it, and the route stays as it is. Writers
        of the dataset wait while a small one runs, and of a large one while what they wrote meanwhile is brought;
        readers don't notice. If the arm holds the head already, nothing happens.

        Args:
            dataset: which one.
            to: the arm to copy to.
            writer: the named place in the product that writes.
            progress: is told how many rows were read so far.

        Raises:
            ParityMismatch: the arms would differ; the copy was removed.
        """
        dataset = self._tree.by_id(dataset.id)
        if dataset.head_version == 0:
            raise UsageError(f"dataset {dataset.name} has no version to copy", dataset=dataset.name)
        arm = self._routing.arm(to)
        if any(place.arm.name == to for place in self._routing.holders(dataset)):
            return WriteResult.nothing(dataset.name, "copy", dataset.head_version, dataset.row_count)
        if dataset.row_count > AT_ONCE_ROWS and arm.mirrors and self._replication.lag(dataset, to).waits is None:
            proved = self._ahead(dataset, to, writer, progress)
            if proved is not None:
                return self._rest(dataset, to, writer, proved)
        return self._copy(dataset, to, writer, progress)

    def _ahead(
        self, dataset: DatasetRecord, to: str, writer: str, progress: Callable[[int], None] | None
    ) -> tuple[int, Digest] | None:
        """Bring a version to the arm while writers go on, and compare all its rows; return its number and digest.

        Returns:
            None: what the arm had before is not equal, or others removed one of the two; it has to be written anew.

        Raises:
            ParityMismatch: what was brought is not; it was removed.
        """
        replication = self._replication
        replication.backfill(
            dataset, to, writer=writer, watched=lambda rows: rows if progress is None else counted(rows, progress)
        )
        dataset = self._tree.by_id(dataset.id)
        waiting, table = replication.proving.waiting(dataset, to), table_ref(dataset)
        version = waiting.version if waiting is not None else replication.lag(dataset, to).holds
        # Between two steps others may remove what was brought, or the rows that it was brought of.
        if version is None:
            return None
        serving = self._routing.resolve(dataset, dataset.route.primary_arm, version)
        copied = (
            self._routing.resolve(dataset, to, version) if waiting is None else Place(self._routing.arm(to), waiting)
        )
        if serving is None or copied is None:
            return None
        digests = {each.arm.name: each.arm.digest(table, each.version) for each in (serving, copied)}
        parity = Parity(dataset.name, version, digests)
        if waiting is not None:
            if not parity.equal:
                replication.drain(dataset, to)
                raise parity.mismatch()
            replication.proving.prove(dataset, to, waiting)
        return (version, digests[to]) if parity.equal else None

    def _rest(self, dataset: DatasetRecord, to: str, writer: str, proved: tuple[int, Digest]) -> WriteResult:
        """Make the copy a version, with what was written since the one that was compared."""

        def bring(task: WriteTask) -> Brought:
            transaction, (version, digest) = task.transaction, proved
            known = (digest.high, digest.low) if transaction.parent_version == version else transaction.parent_digest
            return Brought(replace(self._replication.missed(task, to).prepared, digest=known), None)

        output = Output(dataset, "copy", bring=bring)
        return self._protocol.run([output], writer=writer, kind="copy", arm=to).transactions[0]

    def _copy(
        self, dataset: DatasetRecord, to: str, writer: str, progress: Callable[[int], None] | None
    ) -> WriteResult:
        source: list[Place] = []

        def rows() -> pa.RecordBatchReader:
            # Called when the dataset's slot is ours, so that the head stays the same until the copy is decided.
            head = self._routing.resolve(self._tree.by_id(dataset.id))
            assert head is not None, "a version was there before, and versions don't go away"
            source.append(head)
            found = head.arm.scan(table_ref(dataset), head.version, Scan(dataset.schema.names, identity=True))
            return found if progress is None else counted(found, progress)

        def audit(prepared: PreparedVersion) -> Digest:
            held = source[0]
            digests = {
                held.arm.name: held.arm.digest(table_ref(dataset), held.version),
                prepared.arm: self._routing.arm(prepared.arm).digest(prepared.table, prepared.where),
            }
            parity = Parity(dataset.name, held.version.version, digests)
            if not parity.equal:
                raise parity.mismatch()
            return digests[prepared.arm]

        output = Output(dataset, "copy", rows, allow_empty=True, audit=audit)
        return self._protocol.run([output], writer=writer, kind="copy", arm=to).transactions[0]
