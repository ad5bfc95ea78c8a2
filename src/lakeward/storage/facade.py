"""The facade: the one door to dataset rows. It asks the route, calls an arm, and runs every write by the protocol."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import pyarrow as pa

from lakeward.access.guard import require
from lakeward.control.flags.cache import FlagCache
from lakeward.control.flags.registry import above_ceiling
from lakeward.control.recorded_digests import RecordedDigests
from lakeward.control.records import OpenTransaction
from lakeward.control.tree import DatasetRecord, Tree
from lakeward.in_place import InPlace
from lakeward.storage.arm import NEW, OLD, Scan, scanned
from lakeward.storage.changes import Wanted, check_order, compared, inserts
from lakeward.storage.compaction import Compaction
from lakeward.storage.copying import Copying
from lakeward.storage.duck import Duck
from lakeward.storage.finding import both
from lakeward.storage.first_rows import first_rows
from lakeward.storage.judging import Judging
from lakeward.storage.parity import Parity
from lakeward.storage.placing import placed
from lakeward.storage.protocol import WriteProtocol
from lakeward.storage.requests import (
    BuildResult,
    ChangesRequest,
    Output,
    PreparedVersion,
    ReadRequest,
    WriteResult,
)
from lakeward.storage.routing import Chosen, Place, Routing
from lakeward.storage.running_digest import RunningDigest
from lakeward.storage.scans import CHANGES, FIRST, columns_of, kind_of, scan_of, schema_of
from lakeward.storage.shadow import Shadow, ShadowRead
from lakeward.storage.table import table_ref
from lakeward.storage.verbs import verb_named
from lakeward.types.conform import to_reader
from lakeward.types.digest import EMPTY, Digest

WHOLE = ReadRequest()
"""Every row and business column of the head."""

READ = "dataset.read"

log = logging.getLogger("lakeward.storage")


class Storage:
    """Reads and writes datasets, whatever arm they are on, for whoever acts and may.

    Args:
        tree: names and what they stand for.
        routing: which arm a read goes to.
        protocol: how a write becomes visible.
        recorded: the digests that were found before.
        duck: compares versions.
        compaction: looks after the files of what was written.
        flags: what writers may do, and how they make datasets.
        shadow: compares the arms for readers that want that.
        copying: brings versions to other arms.
    """

    def __init__(
        self,
        tree: Tree,
        routing: Routing,
        protocol: WriteProtocol,
        recorded: RecordedDigests,
        duck: Duck,
        compaction: Compaction,
        flags: FlagCache,
        shadow: Shadow,
        copying: Copying,
    ) -> None:
        self._tree = tree
        self.flags = flags
        self.shadow = shadow
        self._duck = duck
        self._compaction = compaction
        self._recorded = recorded
        self.routing = routing
        self.protocol = protocol
        self._copying = copying
        self.judging: Judging | None = None
        """What looks at versions before they are decided; it reads them by this facade, and comes after it."""

    # Reading ---------------------------------------------------------------------------------------------------------

    def read(
        self, dataset: DatasetRecord, request: ReadRequest = WHOLE, *, reader: str = "api.read"
    ) -> pa.RecordBatchReader:
        """Stream the rows that `request` describes.

        The version is resolved through the ledger when this is called; writes that commit later don't change it.

        Args:
            dataset: which one; the record may be of an earlier moment.
            request: which rows and columns.
            reader: the named place in the product that reads.

        Raises:
            Forbidden: whoever acts may not read it.
            SchemaError: an unknown column.
            SqlError: the filter is not a predicate over the row's columns.
            UnknownVersion, ArmNotCurrent: see `Routing.choose`.
        """
        dataset = self._readable(dataset)
        scan, table = scan_of(dataset, request), table_ref(dataset)
        chosen = self.routing.choose(dataset, reader, request.arm, request.version)
        schema = schema_of(dataset, scan)
        kind = kind_of(dataset, scan)
        return self._streamed(
            dataset, chosen, schema, lambda place: place.arm.scan(table, place.version, scan), kind, scan
        )

    def in_place(
        self, reads: Sequence[tuple[DatasetRecord, ReadRequest]], *, reader: str = "api.read"
    ) -> list[InPlace | None]:
        """Say how an engine can read the rows of each `read` itself; None where they have to be streamed.

        The arguments and errors are those of `read`, and so is what becomes of files while they are read: those of a
        version that expires stay for the grace of `maintain`. What is compared with another arm is streamed.
        """
        for dataset, _ in reads:
            require(READ, dataset.slugs, dataset.name)
        return placed(self._tree, self.routing, reads, reader)

    def read_prepared(
        self, prepared: PreparedVersion, columns: Sequence[str], since: int | None = None
    ) -> pa.RecordBatchReader:
        """Stream rows of a version that an audit looks at, which nobody else can see.

        Args:
            prepared: which one.
            columns: business columns, in the order wanted.
            since: only rows that were written after this version.
        """
        return self.routing.arm(prepared.arm).scan(prepared.table, prepared.where, Scan(tuple(columns), since=since))

    def first_rows(
        self, dataset: DatasetRecord, count: int, request: ReadRequest = WHOLE, *, reader: str = "api.preview"
    ) -> pa.Table:
        """Return the first `count` rows that `request` describes, in the order of `__row_index`.

        The arguments and errors are those of `read`. Where the arm can tell positions apart without reading the rows,
        those further back are not read.
        """
        dataset = self._readable(dataset)
        scan = scan_of(dataset, request)
        chosen = self.routing.choose(dataset, reader, request.arm, request.version)
        schema = schema_of(dataset, scan)
        if chosen.place is None or count == 0:
            return schema.empty_table()
        positions = dataset.next_row_index if chosen.place.version.version == dataset.head_version else None
        start = 0 if request.after is None else request.after + 1

        def opened(place: Place) -> pa.RecordBatchReader:
            found = first_rows(place, table_ref(dataset), replace(scan, identity=True), count, positions, start)
            return found.select(schema.names).to_reader()

        return self._streamed(dataset, chosen, schema, opened, FIRST, scan).read_all()

    def changes(
        self, dataset: DatasetRecord, request: ChangesRequest, *, reader: str = "api.changes"
    ) -> pa.RecordBatchReader:
        """Stream what changed between two versions of a dataset, `__op` first.

        The versions are resolved through the ledger when this is called. They are read from one arm if one holds both,
        at the cost of what changed; else from two, at the cost of the dataset.

        Args:
            dataset: which one; the record may be of an earlier moment.
            request: which versions and columns.
            reader: the named place in the product that reads.

        Raises:
            SchemaError: an unknown column, or one called `__op`.
            UsageError: `since` is negative, or later than `version`.
            UnknownVersion, ArmNotCurrent: see `Routing.choose`.
        """
        dataset = self._readable(dataset)
        check_order(dataset.name, request.since, request.version)
        table, columns = table_ref(dataset), columns_of(dataset, request.columns)
        wanted = Wanted(columns, request.before, request.identity)
        wanted.check(table)
        schema = wanted.arrow(dataset.schema)
        newest = dataset.head_version if request.version is None else request.version
        if request.since == 0:
            if newest == 0:
                return inserts(table, None, wanted)
            chosen = self.routing.choose(dataset, reader, request.arm, request.version)
            return self._streamed(dataset, chosen, schema, lambda place: inserts(table, place, wanted), CHANGES)
        old, chosen, beside = self.routing.choose_pair(dataset, reader, request.arm, request.since, newest)

        def opened(new: Place) -> pa.RecordBatchReader:
            older = old if new is chosen.place or beside is None else beside
            if older.arm is new.arm:
                sides = new.arm.changes(table, older.version, new.version)
            else:
                sides = scanned(older.arm, table, older.version, OLD), scanned(new.arm, table, new.version, NEW)

            def still_there() -> None:
                for place in (older, new):
                    self.routing.resolve(dataset, place.arm.name, place.version.version)

            return compared(self._duck, table, sides, wanted, still_there)

        return self._streamed(dataset, chosen, schema, opened, CHANGES)

    def _streamed(
        self,
        dataset: DatasetRecord,
        chosen: Chosen,
        schema: pa.Schema,
        opened: Callable[[Place], pa.RecordBatchReader],
        kind: str,
        scan: Scan | None = None,
    ) -> pa.RecordBatchReader:
        """Stream what a reader asks for from where it goes, compared with another arm if it is to be."""
        if chosen.place is None:
            return pa.RecordBatchReader.from_batches(schema, iter(()))
        self.routing.told(dataset, chosen, kind)
        if not chosen.shadow:
            return opened(chosen.place)
        head = chosen.place.version.version == dataset.head_version

        def still_there() -> None:
            for place in filter(None, (chosen.place, chosen.beside)):
                self.routing.resolve(dataset, place.arm.name, place.version.version)

        return self.shadow.read(
            ShadowRead(
                table_ref(dataset),
                chosen.reader,
                tuple(schema.names),
                chosen.place,
                chosen.beside,
                dataset.route.mirror_arm,
                opened,
                still_there,
                dataset.next_row_index if head else None,
                scan.where.columns if scan is not None and scan.where is not None else (),
            )
        )

    def digest(self, dataset: DatasetRecord, *, arm: str | None = None, version: int | None = None) -> Digest:
        """Compute the digest of one version from the rows of one arm (None: the one that serves)."""
        dataset = self._readable(dataset)
        place = self.routing.resolve(dataset, arm, version)
        return EMPTY if place is None else place.arm.digest(table_ref(dataset), place.version)

    def verify(self, dataset: DatasetRecord) -> Parity:
        """Compare the digests of the head version on every arm that holds it, and with the one that was recorded.

        The first digest of a version is recorded with it, so that a later look finds what changed under our feet, also
        where one arm alone holds the version.

        Raises:
            ParityMismatch: they differ.
        """
        dataset = self._readable(dataset)
        places = self.routing.holders(dataset)
        found = both(places, lambda place: place.arm.digest(table_ref(dataset), place.version))
        digests = {place.arm.name: digest for place, digest in zip(places, found, strict=True)}
        version = places[0].version.version if places else 0
        recorded = self._recorded.of(dataset.id, version)
        parity = Parity(dataset.name, version, digests, recorded)
        if not parity.equal:
            raise parity.mismatch()
        if places and recorded is None:
            self._recorded.record(dataset.id, version, digests[places[0].arm.name])
        return parity

    def recorded_digest(self, dataset: DatasetRecord, version: int) -> Digest | None:
        """Return the digest of a version as it was when it was first computed; None: nobody has."""
        require(READ, dataset.slugs, dataset.name)
        return self._recorded.of(dataset.id, version)

    def added_digest(self, dataset: DatasetRecord, since: int, version: int) -> Digest:
        """Return the digest of the rows that a version has and that were written after another one; reads them."""
        running = RunningDigest(self._duck, dataset.schema)
        for _ in running.over(self.read(dataset, ReadRequest(since=since, version=version))):
            pass
        return running.digest

    def locate(self, dataset: DatasetRecord) -> dict[str, dict[str, str]]:
        """Say, for each arm that holds the head version, where its rows physically are."""
        dataset = self._readable(dataset)
        return {
            place.arm.name: place.arm.locate(table_ref(dataset), place.version)
            for place in self.routing.holders(dataset)
        }

    def _readable(self, dataset: DatasetRecord) -> DatasetRecord:
        """Return a dataset as it is now, if whoever acts may read it."""
        require(READ, dataset.slugs, dataset.name)
        return self._tree.by_id(dataset.id)

    # Writing ---------------------------------------------------------------------------------------------------------

    def write(
        self,
        dataset: DatasetRecord,
        rows: object,
        *,
        verb: str,
        writer: str,
        allow_empty: bool = False,
        idempotency_key: str | None = None,
    ) -> WriteResult:
        """Write rows to one dataset, atomically.

        Args:
            dataset: which one.
            rows: an Arrow table, batch or reader, anything that exports an Arrow stream, or an iterable of dicts.
            verb: the name of one of `VERBS`.
            writer: the named place in the product that writes.
            allow_empty: lets `replace` and `mirror` take zero rows.
            idempotency_key: see `Output`.

        Raises:
            Forbidden: whoever acts may not write to it.
            DataError: the rows are refused; nothing was written.
            KeyReused: the key stands for another request.
            ConflictError: somebody else holds or changed the dataset; nothing was written.
        """
        taken = verb_named(verb).input_schema(dataset.schema)
        opened = partial(to_reader, rows, taken, dataset=dataset.name)
        output = Output(dataset, verb, opened, allow_empty=allow_empty, idempotency_key=idempotency_key)
        return self.build([output], writer=writer).transactions[0]

    def build(
        self,
        outputs: Sequence[Output],
        *,
        writer: str,
        pipeline: str | None = None,
        width: int = 1,
        build_id: uuid.UUID | None = None,
    ) -> BuildResult:
        """Write several datasets, visible together or not at all. See `WriteProtocol.run`."""
        for output in outputs:
            require("dataset.write", output.dataset.slugs, output.dataset.name)
            verb_named(output.verb).check(output.dataset.schema, output.dataset.name)
        judgement = self.judging.of(outputs, pipeline) if self.judging is not None else None
        outputs = judgement.outputs if judgement is not None else outputs
        outputs = [replace(output, opened=partial(self._may_write, writer, output.opened)) for output in outputs]
        result = self.protocol.run(outputs, writer=writer, pipeline=pipeline, width=width, build_id=build_id)
        self._compaction.after_writes([output.dataset for output in outputs])
        return judgement.told(result) if judgement is not None else result

    def _may_write(
        self, writer: str, opened: Callable[[OpenTransaction], None] | None, transaction: OpenTransaction
    ) -> None:
        """Refuse a writer whose ceiling is below the mode of the dataset, by the route that the write would follow."""
        registered = self.flags.writer(writer)
        if registered is not None and not registered.allows(transaction.route.mode):
            raise above_ceiling(registered, transaction.route.mode, transaction.dataset)
        if opened is not None:
            opened(transaction)

    def copy(
        self,
        dataset: DatasetRecord,
        to: str,
        *,
        writer: str = "dataset.copy",
        progress: Callable[[int], None] | None = None,
    ) -> WriteResult:
        """Bring the head version to another arm, if it is not there; see `Copying.copy`."""
        require("dataset.copy", dataset.slugs, dataset.name)
        return self._copying.copy(dataset, to, writer=writer, progress=progress)
