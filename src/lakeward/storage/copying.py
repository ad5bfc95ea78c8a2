"""Copies of a dataset's newest version on another arm, verified before anybody sees them."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from lakeward.control.tree import DatasetRecord, Tree
from lakeward.errors import UsageError
from lakeward.storage.arm import Scan
from lakeward.storage.counted import counted
from lakeward.storage.parity import Parity
from lakeward.storage.protocol import WriteProtocol
from lakeward.storage.requests import Output, PreparedVersion, WriteResult
from lakeward.storage.routing import Place, Routing
from lakeward.storage.table import table_ref
from lakeward.types.digest import Digest


class Copying:
    """Makes copies, in one workspace.

    Args:
        tree: names and what they stand for.
        routing: where versions are.
        protocol: how a copy becomes visible.
    """

    def __init__(self, tree: Tree, routing: Routing, protocol: WriteProtocol) -> None:
        self._tree = tree
        self._routing = routing
        self._protocol = protocol

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
        of the dataset wait while it runs; readers don't notice. If the arm holds the head already, nothing happens.

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
        self._routing.arm(to)
        if any(place.arm.name == to for place in self._routing.holders(dataset)):
            return WriteResult.nothing(dataset.name, "copy", dataset.head_version, dataset.row_count)
        return self._copy(dataset, to, writer, progress)

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
