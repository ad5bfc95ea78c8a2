"""A micro-batch: whole transactions of a source, on their way to the datasets of its tables as one build."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from lakeward.control.records import Fed
from lakeward.control.sources import in_log
from lakeward.control.tree import DatasetRecord
from lakeward.sources.change_log import CHANGE_COLUMNS, Changes
from lakeward.sources.change_spool import ChangeSpool
from lakeward.sources.connector import Position
from lakeward.sources.net_changes import Netting
from lakeward.sources.unsent_values import Ranges
from lakeward.storage.facade import Storage
from lakeward.storage.filters import quote_identifier
from lakeward.storage.requests import Output, ReadRequest
from lakeward.storage.verbs import verb_named
from lakeward.types.conform import to_reader
from lakeward.types.table import arrow_schema
from lakeward.wiring.follow_modes import FollowMode
from lakeward.wiring.follow_plan import TableFollow
from lakeward.wiring.held_feed import HeldFeed


@dataclass(frozen=True)
class FedTable:
    """A followed table on its way: its plan, its dataset, and up to where that has the log."""

    follow: TableFollow
    record: DatasetRecord
    after: Position


class Writing:
    """Turns the changes of tables into what a build writes.

    Args:
        storage: reads rows whose large values were not sent.
        netting: finds the last change of each key.
        held: looks at the datasets once nobody else can write them.
        mode: how changes are written.
    """

    def __init__(self, storage: Storage, netting: Netting, held: HeldFeed, mode: FollowMode) -> None:
        self._storage = storage
        self._netting = netting
        self._held = held
        self._mode = mode

    def output(self, table: FedTable, spool: ChangeSpool, upto: Position) -> Output:
        """Return what is written of one table."""
        replaces = spool.truncated and not self._mode.log
        verb = "append" if self._mode.log else "replace" if replaces else "changes"
        record = table.record

        def rows() -> pa.RecordBatchReader:
            batches = self._as_rows(spool, record) if self._mode.log else self._netted(spool, table)
            taken = verb_named(verb).input_schema(record.schema)
            schema = arrow_schema(taken)
            exact = (batch.select(schema.names).cast(schema) for batch in batches)
            return to_reader(pa.RecordBatchReader.from_batches(schema, exact), taken, dataset=record.name)

        def fed() -> Fed:
            # Worth a version also where nothing is left to do: else the rows of another table, written by the same
            # build, would be ahead of these after a restart, which reads them again in other parts.
            return Fed(table.follow.plan.source, table.follow.table.full_name, in_log(upto), alone=True)

        opened = self._held.check(table.follow, record, table.after)
        return Output(record, verb, rows, allow_empty=True, opened=opened, fed=fed)

    def _netted(self, spool: ChangeSpool, table: FedTable) -> Iterator[pa.RecordBatch]:
        record = table.record

        def present(columns: Sequence[str], ranges: Ranges, keys: pa.Table) -> Iterator[pa.RecordBatch]:
            bounds = [
                f"{quote_identifier(name)} >= {low} AND {quote_identifier(name)} <= {high}"
                for name, (low, high) in ranges.items()
            ]
            request = ReadRequest(tuple(columns), " AND ".join(bounds) or None, keys=keys)
            yield from self._storage.read(record, request, reader="cdc.changes")

        return self._netting.net(spool, record.schema.primary_key, present).batches

    def _as_rows(self, spool: ChangeSpool, record: DatasetRecord) -> Iterator[pa.RecordBatch]:
        """Return changes as rows: what is said of the change is called by a name with one underscore."""
        log = {field.name: field.name[1:] for field in CHANGE_COLUMNS}
        for _, batch in spool.batches():
            yield batch.rename_columns([log.get(name, name) for name in batch.schema.names])


class MicroBatch:
    """Gathers changes up to where whole transactions were read.

    Args:
        directory: where what is too much for memory is kept.
        clock: seconds that only go up.
    """

    def __init__(self, directory: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._directory = directory
        self._clock = clock
        self._begun: float | None = None
        self.spools: dict[str, ChangeSpool] = {}
        self.upto: Position | None = None
        self.whole = True
        """Whether it ends where a transaction does."""

    @property
    def rows(self) -> int:
        """How many changes there are."""
        return sum(spool.rows for spool in self.spools.values())

    @property
    def size(self) -> int:
        """How many bytes they have."""
        return sum(spool.size for spool in self.spools.values())

    @property
    def age(self) -> float:
        """For how many seconds there have been any."""
        return 0.0 if self._begun is None else self._clock() - self._begun

    def add(self, changes: Changes) -> None:
        """Take a part of the log."""
        for name, rows in changes.rows.items():
            if rows.num_rows:
                self.spools.setdefault(name, ChangeSpool(self._directory)).add(rows)
                self._begun = self._clock() if self._begun is None else self._begun
        self.whole = changes.upto is not None
        if changes.upto is not None:
            self.upto = changes.upto

    def outputs(self, tables: Mapping[str, FedTable], writing: Writing) -> list[Output]:
        """Return what one build writes of it."""
        assert self.upto is not None
        return [writing.output(tables[name], spool, self.upto) for name, spool in self.spools.items()]

    def close(self) -> None:
        """Give up what is kept; repeating it does nothing."""
        for spool in self.spools.values():
            spool.close()
        self.spools.clear()
