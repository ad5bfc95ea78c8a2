"""The first copy of followed tables: what they were when their log began, decided together with that position."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack

import pyarrow as pa

from lakeward.control.records import Fed
from lakeward.control.sources import in_log
from lakeward.control.tree import DatasetRecord
from lakeward.errors import LakewardError
from lakeward.sources.change_log import ChangeLog
from lakeward.sources.connector import FULL, Position, ReadWindow, Snapshot
from lakeward.storage.facade import Storage
from lakeward.storage.requests import BuildResult, Output
from lakeward.types.conform import to_reader
from lakeward.types.table import arrow_schema
from lakeward.wiring.counted_batches import CountedBatches, Progress
from lakeward.wiring.follow_modes import COPY, LOG_COLUMNS
from lakeward.wiring.follow_plan import TableFollow
from lakeward.wiring.held_feed import HeldFeed


class FirstCopy:
    """Copies tables, all of them visible at once.

    Args:
        storage: writes.
        log: begins.
        held: looks at the datasets once nobody else can write them.
        progress: is told the rows so far.
    """

    def __init__(self, storage: Storage, log: ChangeLog, held: HeldFeed, progress: Progress | None) -> None:
        self._storage = storage
        self._log = log
        self._held = held
        self._progress = progress
        self._begun: tuple[Snapshot, Position] | None = None
        self._counted: list[CountedBatches] = []

    def run(self, tables: Sequence[tuple[TableFollow, DatasetRecord]], writer: str) -> BuildResult:
        """Copy. The log begins once every dataset is held, so that nobody writes between its position and the rows.

        Raises:
            ValueRefused: a value has no form in its column's type; no dataset was written.
            What `ChangeLog.begin` and `Storage.build` raise.
        """
        with ExitStack() as stack:
            outputs = [self._output(each, record, [one for one, _ in tables], stack) for each, record in tables]
            try:
                return self._storage.build(outputs, writer=writer)
            except Exception as error:
                # On its way through other libraries an error of the source may have kept only its text.
                raised = _raised(self._counted)
                if raised is not None and raised is not error:
                    raise raised from error
                raise

    def _output(
        self, follow: TableFollow, record: DatasetRecord, together: Sequence[TableFollow], stack: ExitStack
    ) -> Output:
        def rows() -> pa.RecordBatchReader:
            if self._begun is None:
                self._begun = stack.enter_context(self._log.begin([each.table for each in together]))
            read = self._begun[0].read(ReadWindow(follow.table, follow.types, FULL, matched=bool(follow.plan.keyed)))
            counted = CountedBatches(read.rows, f"copying {record.name}", follow.table.rows, self._progress)
            self._counted.append(counted)
            if follow.plan.types == follow.types:
                reader = pa.RecordBatchReader.from_batches(read.rows.schema, counted)
            else:
                reader = pa.RecordBatchReader.from_batches(arrow_schema(record.schema), _as_changes(counted, record))
            return to_reader(reader, record.schema, dataset=record.name)

        def fed() -> Fed:
            assert self._begun is not None, "rows are read before they are decided"
            return Fed(follow.plan.source, follow.table.full_name, in_log(self._begun[1]), alone=True, begins=True)

        opened = self._held.check(follow, record, None)
        return Output(record, follow.plan.verb, rows, allow_empty=True, opened=opened, fed=fed)


def _as_changes(batches: CountedBatches, record: DatasetRecord) -> Iterator[pa.RecordBatch]:
    """Return rows as what they are in a dataset of changes: there when it began."""
    schema = arrow_schema(record.schema)
    for batch in batches:
        own = {column.name: pa.nulls(batch.num_rows, schema.field(column.name).type) for column in LOG_COLUMNS}
        own[LOG_COLUMNS[0].name] = pa.repeat(pa.scalar(COPY, pa.string()), batch.num_rows)
        columns = [own[name] if name in own else batch.column(name) for name in schema.names]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _raised(counted: Sequence[CountedBatches]) -> LakewardError | None:
    return next((each.raised for each in counted if each.raised is not None), None)
